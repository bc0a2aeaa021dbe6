package sqlite

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Where SQLite's readers of the log lock its index file (wal.c and os_unix.c: UNIX_SHM_BASE + WAL_READ_LOCK(1) to (4)).
const (
	readLockFirst = 124
	readLockLast  = 127
)

// holders gives the other processes that have a reader's lock on a log's index, as the kernel lists its locks
// (proc_locks(5)); those of other containers are not seen. Asking SQLite's own way, by opening the file, would drop
// this process' locks on it as the file is closed.
func holders(path string) []int {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer func() { _ = locks.Close() }()
	var found []int
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if p, ok := readLock(lines.Text(), file.Ino); ok && p != os.Getpid() && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found
}

// readLock reads a line such as "7: POSIX  ADVISORY  READ 4711 08:01:131090 124 124".
func readLock(line string, inode uint64) (process int, ok bool) {
	f := strings.Fields(line)
	if len(f) != 8 || f[1] != "POSIX" || f[5][strings.LastIndexByte(f[5], ':')+1:] != strconv.FormatUint(inode, 10) {
		return 0, false
	}
	process, err := strconv.Atoi(f[4])
	first, bad := strconv.Atoi(f[6])
	return process, err == nil && bad == nil && first >= readLockFirst && first <= readLockLast
}
