package sqlite

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"chancery/internal/core/store/internal/engine"
)

// Magic numbers of file systems, from statfs(2).
var fileSystems = map[int64]struct {
	name string
	why  string // "" where a sync lasts and locks work
}{
	0xef53:     {name: "ext4"},
	0x58465342: {name: "xfs"},
	0x9123683e: {name: "btrfs"},
	0x2fc12fc1: {name: "zfs"},
	0xf2f52010: {name: "f2fs"},
	0x794c7630: {name: "overlay"}, // as durable as the layer below
	0x01021994: {name: "tmpfs", why: "the file is in memory and gone with the power"},
	0x858458f6: {name: "ramfs", why: "the file is in memory and gone with the power"},
	0x6969:     {name: "nfs", why: "SQLite's shared memory and locks do not work over a network"},
	0xff534d42: {name: "cifs", why: "SQLite's shared memory and locks do not work over a network"},
	0xfe534d42: {name: "smb2", why: "SQLite's shared memory and locks do not work over a network"},
	0x01021997: {name: "9p", why: "a sync may stop at the host's cache"},
	0x65735546: {name: "fuse", why: "a sync is worth what the program behind it makes of it"},
}

func fileSystem(path string) engine.Setting {
	s := engine.Setting{Name: "file_system", Value: "unknown", Safe: true}
	var info unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &info); err != nil {
		s.Safe, s.Why = false, fmt.Sprintf("the file system could not be asked: %v", err)
		return s
	}
	kind := int64(uint32(info.Type))
	s.Value = fmt.Sprintf("%#x", kind)
	if known, ok := fileSystems[kind]; ok {
		s.Value, s.Why, s.Safe = known.name, known.why, known.why == ""
	}
	return s
}
