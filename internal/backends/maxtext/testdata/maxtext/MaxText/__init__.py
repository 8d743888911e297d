__version__ = "26.3"
