// Package pysource reads Python source files without running Python.
//
// # Concepts
//
// Tokenize splits a file into the tokens of the language reference: indentation, line joining,
// comments, numbers, strings with all prefixes. Parse makes the syntax tree of a file; its nodes
// have the names and fields of those of Python's module ast. An f-string is one token, and a
// JoinedStr in the tree. The grammar is that of Python 3.13 for both, which reads the files of
// older versions too.
//
// Every node has a Span of byte offsets into File.Text, in which line ends are \n; File.Line and
// File.Position turn these into lines and columns, File.Source into the text of a node.
//
// # Concurrency
//
// A File is immutable once it is parsed. The functions may be called concurrently.
//
// # Errors
//
// A file that is not Python gives a *SyntaxError with the line and the column. The parser is more
// lenient than Python: it does not make the checks of the compiler after parsing, such as for a
// return outside of a function. No input makes the package panic, and the memory needed is
// proportional to the length of the input.
package pysource
