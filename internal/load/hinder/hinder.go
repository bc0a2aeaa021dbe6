// Package hinder makes the surroundings of a server bad while it is measured: a disk that syncs slowly or stalls (Disk),
// a database server that cannot be reached for a while (Proxy), a machine with few cores and little memory (Small).
// The server's own program is not changed and does not know.
//
// Disk and Small act on a process from its start. Their Wrap puts a launcher before the program: this executable, called
// so that it comes to Launch, which hinders itself and then becomes the program, under the same process number.
package hinder

import "chancery/internal/base/fault"

// unsupported is a hindrance that this system cannot give.
func unsupported(format string, args ...any) *fault.Error {
	return fault.New(fault.Conflict, "hindrance_unsupported", format, args...)
}
