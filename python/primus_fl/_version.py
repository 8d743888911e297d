"""The version of the package. make wheel writes it, and that of the library in the package."""

__version__ = "0.0.0"

#: The library that belongs to this package, "" for any, in a source tree.
LIBRARY = ""
