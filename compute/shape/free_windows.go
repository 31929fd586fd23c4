package shape

import "golang.org/x/sys/windows"

// freeSpace is what a user may still write to the volume of a folder; false when nobody knows.
func freeSpace(dir string) (uint64, bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err == nil
}
