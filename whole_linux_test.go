package main

import (
	"testing"
	"time"
)

// TestNoAdapter hides every Vulkan driver.
func TestNoAdapter(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 60*time.Second)
	p.opensSignal()
	host := p.opensRoom("FEA-Q38", "1")
	host.sees("room.online")
	p.env = append(p.env, "VK_DRIVER_FILES=/nonexistent.json", "VK_ICD_FILENAMES=/nonexistent.json")
	for _, args := range [][]string{{"host", "mini"}, {"join", "FEA-Q38"}, {"join", "FEA-Q38", "--json-log"}} {
		p.member(args...).fails(3, "no GPU that can be used was found", "Vulkan", "pooled chat works without a GPU")
	}
	chat := p.chat("FEA-Q38", multiply)
	chat.exits(0)
	if got := chat.out.String(); got != "391\n" {
		t.Errorf("stdout %q", got)
	}
}
