package load

import (
	"context"
	"fmt"
	"os"
	"testing"

	"chancery/internal/load/bare"
)

// TestMain lets the test binary stand in for the program where a test starts the bare handler.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "bench" && os.Args[2] == "bare" {
		if err := bare.Serve(context.Background(), os.Args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
