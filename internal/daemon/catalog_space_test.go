package daemon

import (
	"strings"
	"testing"

	"vaultd/internal/dropwork"
	"vaultd/internal/test/kit"
)

// The catalog stops growing before the work has to stop for want of room, on the disk of the state directory itself: the spool may be a mount of
// its own. What it says is the same each time, so it is logged once.
func TestCheckCatalogSpace_I26_LeavesTheRoomToTheWork(t *testing.T) {
	t.Parallel()
	free := int64(0)
	d := &Daemon{cfg: Config{StateDir: "/state", SpoolMinFree: 1000e6}, shared: &dropwork.Shared{FreeBytes: func(path string) int64 {
		kit.Want(t, "the free space", path, "/state")
		return free
	}}}
	for bytes, isRefused := range map[int64]bool{0: true, 1060e6: true, 1099e6: true, 1100e6: false, 1 << 50: false, -1: false} {
		free = bytes
		if err := d.checkCatalogSpace(); isRefused != (err != nil) || err != nil && !strings.Contains(err.Error(), "less than 1100.0 MB") {
			t.Errorf("with %d bytes free: error = %v, want one about 1100.0 MB: %t", bytes, err, isRefused)
		}
	}
}
