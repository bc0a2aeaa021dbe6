//go:build !linux || !(amd64 || arm64)

package hinder

import "runtime"

// Launch refuses with hindrance_unsupported: only Linux can do it.
func Launch(args []string) error {
	if _, err := parse(args); err != nil {
		return err
	}
	return unhindered()
}

func allowedCores() ([]int, error) { return nil, unhindered() }

func unhindered() error {
	return unsupported("processes can be hindered on Linux on amd64 and arm64 only, not on %s/%s", runtime.GOOS, runtime.GOARCH)
}
