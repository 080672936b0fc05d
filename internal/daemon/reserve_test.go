package daemon

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
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
				if b := h.d.ledger.Balance(); b.Seen != 0 {
					t.Errorf("%v", b)
				}
				if s := h.status(); !strings.Contains(s, row.words) {
					t.Errorf("not told: %s", s)
				}
				if n := strings.Count(h.log.String(), "level=ERROR"); n == 0 || n > 2 {
					t.Errorf("%d errors were logged: %s", n, h.log.String())
				}
				broken.Store(false)
				h.pass()
				if b := h.d.ledger.Balance(); b.States[ledger.Archived] != 2 {
					t.Errorf("%v", b)
				}
			})
		})
	}
}
