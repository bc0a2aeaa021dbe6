package hinder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chancery/internal/base/fault"
)

// TestMemoryParent finds the right directory in descriptions of systems as they occur. ROOT is where they are mounted.
func TestMemoryParent(t *testing.T) {
	const (
		first     = "35 31 0:32 / ROOT/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		cpu       = "32 31 0:29 / ROOT/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		second    = "41 31 0:38 / ROOT rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
		container = "35 31 0:32 /docker/1 ROOT/memory ro - cgroup cgroup rw,memory\n"
	)
	for name, c := range map[string]struct {
		groups, mounts string
		passes         string // groups with memory in cgroup.subtree_control
		dir, missing   string
		files          memoryFiles
	}{
		"version 1":                 {groups: "8:cpu:/x\n4:memory:/a/b\n0::/", mounts: cpu + first + second, dir: "memory/a/b", files: version1},
		"version 1 in a container":  {groups: "4:memory:/docker/1/a\n", mounts: cpu + container, dir: "memory/a", files: version1},
		"version 1 elsewhere":       {groups: "4:memory:/docker/2\n", mounts: container, missing: "no control groups"},
		"version 2":                 {groups: "0::/user/session\n", mounts: second, passes: "user", dir: "user", files: version2},
		"version 2, delegated":      {groups: "0::/user/session\n", mounts: second, passes: "user/session", dir: "user/session", files: version2},
		"version 2 without memory":  {groups: "0::/user/session\n", mounts: second, missing: "cgroup.subtree_control"},
		"both, memory in version 2": {groups: "8:cpu:/\n0::/a\n", mounts: cpu + second, passes: "a", dir: "a", files: version2},
		"none":                      {groups: "", mounts: cpu, missing: "no control groups"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "cgroup"), c.groups)
			write(t, filepath.Join(root, "mountinfo"), strings.ReplaceAll(c.mounts, "ROOT", root))
			if c.passes != "" {
				write(t, filepath.Join(root, c.passes, "cgroup.subtree_control"), "cpu memory\n")
			}
			dir, files, err := memoryParent(root)
			if c.missing != "" {
				if fault.CodeOf(err) != "hindrance_unsupported" || !strings.Contains(err.Error(), c.missing) {
					t.Errorf("%v does not name %q", err, c.missing)
				}
				return
			}
			if err != nil || dir != filepath.Join(root, c.dir) || files != c.files {
				t.Errorf("%s with %v: %v", dir, files, err)
			}
		})
	}
}

// TestGroupThatCannotBeMade has a parent that does not exist, and one that has no file for the bound.
func TestGroupThatCannotBeMade(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup"), "4:memory:/a\n")
	write(t, filepath.Join(root, "mountinfo"), "35 31 0:32 / "+root+" rw - cgroup cgroup rw,memory\n")
	for _, missing := range []string{"no control group can be made in " + root + "/a", "memory.limit_in_bytes"} {
		if _, err := newGroup(root, mebibyte); fault.CodeOf(err) != "hindrance_unsupported" || !strings.Contains(err.Error(), missing) {
			t.Errorf("%v does not name %q", err, missing)
		}
		if err := os.MkdirAll(filepath.Join(root, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(root, "a")); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

const mebibyte = 1 << 20

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
