package native

// NamesElsewhere is for tests.
var NamesElsewhere = namesElsewhere
