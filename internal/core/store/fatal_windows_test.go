package store_test

// asFatalChild has no part here: there is no limit on the size of files.
func asFatalChild() {}
