// Command chancery says who is who and who may act for whom: a certificate authority for people, machines and AI
// agents in one program.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // time windows of constraints need zones where the system has none

	"chancery/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
