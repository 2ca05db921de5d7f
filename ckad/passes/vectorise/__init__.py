"""Loops over elements whose iterations can run side by side become array ops.

``for i: b[i] = a[i - 1] + a[i + 1]`` becomes the rows that ``b[1:-1] = a[:-2] + a[2:]`` has. What
is computed stays the same but for the order of sums: a sum over iterations is the sum of an array,
added to what the loop starts from. A loop for which this cannot be shown stays as it is.

In the order of a loop's way through the files:

    loops        Finds the loops of a tape, the innermost first, so that ``for i: for j:`` becomes
                 rows along j, then one loop over them, then rows along both.
    predicate    Clears the body: a branch becomes a choice, both of its sides being computed.
    unflatten    ``a[i, j]``, recorded as one place of the flattened array, is ``a[i][j]`` again;
                 not so in a loop that stays.
    region       A region says which elements of an array one iteration touches, axis by axis: a
                 range, a place known for each iteration, or a place only the program will know.
    survey       Walks the body once. Integers that follow from i are known, views are regions,
                 writes are versions of their array. What one iteration hands to the next is a cell.
                 `Unfit` if an iteration reads, or writes over, what another one writes.
    reduction    A cell that iterations only add to is a sum; its terms, and those under a mask.
    extremum     A cell that is replaced where something larger is found is a record.
    order        Which values are needed of all iterations, each after those it is made from.
                 `Unfit` if one needs what the iteration before it computes, and is no sum.
    access       Reads a region of all iterations as one array, and puts it back: slices where the
                 places are even runs, else gather and scatter.
    batch        One row of the body as one row of all iterations, its first axis.
    rows         Puts these together: in the order found, the rows that replace the loop.
    transposes   Loops over columns leave transposes, which are moved on until they vanish.

What loops leave, ``products`` looks through for sums of products: matrix products; ``segments`` for
sums over runs of places, such as the rows of a sparse matrix. Where all iterations at once would be
too large, ``passes.contract`` makes products of matrices of sums between known bounds.

A loop whose number of steps follows from the loops around it is one over all places under a mask
(``passes.loops.counted``) where the outer loop becomes rows with it; else it stays.

A loop that writes a row and a column of a matrix in each step may be two loops that write one each
(``passes.loops.fission``).

Where an exception says `Unfit`, the loop is copied as it was, with its inner loops vectorised.
"""

from ckad.passes.vectorise.loops import vectorise

__all__ = ["vectorise"]
