//go:build !linux

package sqlite

import "chancery/internal/core/store/internal/engine"

// fileSystem is not examined here: the platform offers no portable name for what a path stands on.
func fileSystem(string) engine.Setting {
	return engine.Setting{Name: "file_system", Value: "not examined", Safe: true}
}
