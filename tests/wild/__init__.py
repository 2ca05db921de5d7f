"""Programs in the style of published simulation codes, with the habits they are written with."""
