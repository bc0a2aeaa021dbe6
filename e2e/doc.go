// Package e2e tells the journeys of people as stories, one txtar file each in testdata, and tries them on the real program
// with real foreign tools: the shell commands of a story are what its reader would type.
//
// The stories need no database server and no network beyond loopback. What a story needs that is not installed, such as
// openssl, leaves out that story, and the test says so.
package e2e
