"""What a recording has read from outside of the function, so that it can be used again.

While a function is recorded, a `Watch` notes which values came from outside: names, attributes,
items, arrays. The `Guard` that it leaves holds them against what the function would read now.
"""
