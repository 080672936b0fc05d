package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// The daemon is stopped or reloaded while a large drop folder is being listed.
func TestWatcher_I32_StoppedInTheMiddleOfAListing(t *testing.T) {
	dir := t.TempDir()
	const all = 3000
	for i := range all {
		kit.Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.pdf", i)), nil, 0o660))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	w, err := New(Config{Path: dir, Settle: time.Second, Rescan: time.Hour, Mode: Poll, Complete: Quiet, Rules: Rules{Sidecar: "metadata.json", IsJunk: func(string) bool { return false }},
		OnChange: func() {}, IsComplete: nil, IsReserved: func(string) bool {
			if asked++; asked == all+10 { // in the second listing
				cancel()
			}
			return false
		}})
	kit.Must(t, err)
	go func() {
		for w.Snapshot().LastRescan.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		kit.Want(t, "not taken", w.Snapshot().NotTaken[0].Count, all)
		w.RequestRescan()
	}()
	began := time.Now()
	_ = w.Run(ctx, func(context.Context, Item) error { return nil })
	s := w.Snapshot()
	if len(s.NotTaken) == 0 || s.NotTaken[0].Count != all {
		t.Errorf("after the end the watcher says that it read the whole drop folder at %s (began %s), and that %+v lie there", s.LastRescan, began, s.NotTaken[0].Count)
	}
}
