package observe

import (
	"os"
	"path/filepath"
)

// DiskBytes adds up the sizes of the files in a directory and below; what cannot be read counts as nothing.
func DiskBytes(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
