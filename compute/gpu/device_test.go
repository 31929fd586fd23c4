package gpu

import (
	"context"
	"errors"
	"os"
	"testing"

	"pooled/compute/op"
)

// openTest opens a device for a test and closes it at the end. Without an adapter the test fails, unless POOLED_NO_GPU=1
// says that this machine is known to have none.
func openTest(t testing.TB, o Options) *Device {
	t.Helper()
	d, err := open(context.Background(), o)
	if errors.Is(err, op.ErrNoAdapter) && os.Getenv("POOLED_NO_GPU") == "1" {
		t.Skipf("SKIPPED, NOT TESTED: no GPU adapter and POOLED_NO_GPU=1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
