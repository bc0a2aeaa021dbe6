package store

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"chancery/internal/base/fault"
)

// A fileLock keeps other processes away from a SQLite file. The operating system frees it when the process ends, however
// it ends; the file stays and says who held it last.
type fileLock struct{ file *os.File }

// acquire takes the lock at path or says who holds it.
func acquire(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	if err := tryLock(f); err != nil {
		holder := readHolder(f)
		_ = f.Close() // only read from
		return nil, fault.New(fault.Conflict, "store_locked", "The database is in use by process %s.", holder).
			WithHint("Only one process may open it. Ask that process, or end it first.").Because(err)
	}
	if err := writeHolder(f); err != nil {
		_ = f.Close() // the error that matters is err
		return nil, fmt.Errorf("writing the lock file: %w", err)
	}
	return &fileLock{file: f}, nil
}

// release frees the lock; a nil fileLock has nothing to free.
func (l *fileLock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

func readHolder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 20))
	holder := strings.TrimSpace(string(text))
	if _, bad := strconv.Atoi(holder); err != nil || bad != nil {
		return "unknown"
	}
	return holder
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
