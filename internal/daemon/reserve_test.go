package daemon

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I24: whatever the disk of a drop folder answers, nothing is rejected and nothing is lost; it is told in words, once,
// and goes on by itself.
func TestDisk_I24_DropDiskFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err   error
		words string // for a clerk
	}{
		"Full":     {syscall.ENOSPC, "this share's disk is full"},
		"Quota":    {syscall.EDQUOT, "this share's disk is full"},
		"ReadOnly": {syscall.EROFS, ": this share is read-only; ask IT"},
		"IOError":  {syscall.EIO, "cannot be taken since 00:0"},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			faulty := durable.Hook(func(op, name string, do func() error) error {
				if broken.Load() && (op == "mkdir" || op == "rename") && !strings.HasPrefix(name, "_") && name != ".vaultd" && name != "claimed" && name != "drop.json" {
					return fmt.Errorf("%s %s: %w", op, name, row.err)
				}
				return do()
			})
			withConfiguredDaemon(t, func(c *Config) { c.FileFault = faulty }, func(h *testDaemon) {
				h.drop("Huber 1", "1", "a", false)
				h.drop("Huber 2", "2", "b", false)
				h.pass()
				kit.Want(t, "entries", h.d.ledger.Balance().Seen, 0)
				kit.Holds(t, "status file", h.status(), row.words)
				if n := strings.Count(h.log.String(), "level=ERROR"); n == 0 || n > 2 {
					t.Errorf("%d errors were logged, want 1 or 2:\n%s", n, h.log.String())
				}
				broken.Store(false)
				h.pass()
				kit.Want(t, "archived", h.d.ledger.Balance().States[ledger.Archived], 2)
			})
		})
	}
}
