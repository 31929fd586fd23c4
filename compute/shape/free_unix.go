//go:build linux || darwin

package shape

import "golang.org/x/sys/unix"

// freeSpace is what a user may still write to the file system of a folder; false when nobody knows.
func freeSpace(dir string) (uint64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Bsize <= 0 {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
