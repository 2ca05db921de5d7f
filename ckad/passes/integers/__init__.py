"""What is known of the integers of a tape, and the passes that live by it.

    affine       An integer is a sum of symbols, each with bounds: the indices of loops, and what
                 is not known otherwise.
    ranges       Walks a tape and its bodies with such sums. `in_range`: an index that is proven to
                 be in range is not checked.
    footprint    The same walk, which notes the places that a body reads and writes in its arrays.
    steady       `steady`: an element that a loop meets at one place, which its other places are
                 proven never to be, is read before the loop, or carried by it as a scalar.
    stacked      `stacked`: rows that steps write in order are what a loop gives.
    periodic     The same of rows that every m-th step writes.

All are for a primal tape, before anything is derived from it.
"""
