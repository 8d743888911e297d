// Package settings finds values for the flags that a command line does not give: in the
// environment, in the file primus.yaml of a project and in that of a user.
//
// # Concepts
//
// [Load] reads the files, and [Settings.Resolve] says for each flag of a command what every source
// gives it. Later sources win: default < user file < project file < environment < flag. The project
// file is the nearest primus.yaml in the working directory or above it, the user file is
// primus/primus.yaml in the directory for configurations of the user. The variable
// PRIMUS_CLI_CONFIG names another file to read in place of both, or none.
//
// A key of a file is the name of a flag, and its value what the flag takes: a scalar, or a list for
// a flag that may be repeated. Relative paths are relative to the file. The variable of a flag is
// PRIMUS_ and its name in upper case, with _ for -; a list has the separator of PATH between its
// items.
//
// # Concurrency
//
// Settings are immutable. A flag set belongs to one goroutine.
//
// # Errors
//
// Errors name the file with line and column, or the variable. A file of another user is an error,
// because it could change what commands do. A missing file is an error only if PRIMUS_CLI_CONFIG
// names it.
package settings
