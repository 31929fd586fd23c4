package launch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// freeRAM is how many bytes of this computer's memory programs can still get, 0 when the system does not say.
func freeRAM() int64 {
	f, err := os.Open("/proc/meminfo") // Linux
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kb int64
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}
