"""Arrays with named fields: what is done with them is done with each field."""

from ckad.trace.primitives.fields import access, creation, methods

#: Those that hold rows of the table.
MODULES = (access, creation, methods)
