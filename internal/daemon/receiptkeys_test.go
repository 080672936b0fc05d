package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/drop"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// marked writes a mark with keys into the drop folder, in the place of its own.
func (h *testDaemon) marked(keys ...string) {
	h.t.Helper()
	m, ok, err := drop.ReadMark(h.path)
	h.must(err)
	kit.Need(h.t, ok, "no mark in %s", h.path)
	m.ReceiptKeys = keys
	h.must(drop.TakeOverFolder(h.path, m))
}

// I12: a rebuild that fails leaves the keys of the lost ledger in the mark of a
// drop folder, however often it is tried. The one that succeeds adds its own
// key in front, and the list has a bound that its mark can hold.
func TestRebuild_I12_AFailedTryAddsNoKey(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		lost := make([]string, drop.MostReceiptKeys)
		for i := range lost {
			lost[i] = fmt.Sprintf("%02d%s", i, strings.Repeat("k", 58)) // as long as a key
		}
		lost[0] = h.d.Ledger().Info().ReceiptKeys[0]
		h.halt()
		h.marked(lost...)
		h.must(os.Remove(filepath.Join(h.cfg.StateDir, "ledger.db")))
		fails := errors.New("no new name")
		h.cfg.LedgerFault = func(op string) error {
			if op == "rename" {
				return fails
			}
			return nil
		}
		kept := lost[:drop.MostReceiptKeys-1] // the new key needs room
		for range 3 {
			_, err := Rebuild(h.t.Context(), h.cfg, operator.Person{})
			kit.Fails(h.t, "the rebuild", err, fails)
			kit.Want(h.t, "keys after a failed try", fmt.Sprint(kit.Value(drop.ReadReceiptKeys(h.path))(h.t)), fmt.Sprint(kept))
		}
		h.cfg.LedgerFault = nil
		r := kit.Value(Rebuild(h.t.Context(), h.cfg, operator.Person{}))(h.t)
		kit.Want(h.t, "keys of the ledger", fmt.Sprint(r.Info.ReceiptKeys[1:]), fmt.Sprint(kept))
		kit.Check(h.t, !slices.Contains(lost, r.Info.ReceiptKeys[0]), "the first key is an old one: %q", r.Info.ReceiptKeys[0])
		h.again()
		h.pass()
		kit.Want(h.t, "keys in the mark of the daemon", fmt.Sprint(kit.Value(drop.ReadReceiptKeys(h.path))(h.t)), fmt.Sprint(r.Info.ReceiptKeys))
	})
}

// I12: a backup from before a rebuild lacks the key of the rebuilt ledger. Its
// restore takes it from the marks, so that receipts that were signed in between
// stay known, in the ledger and in the marks.
func TestRestore_I12_KeepsTheKeysOfTheMarks(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		backup, own := h.opened(h.backup()), h.d.Ledger().Info().ReceiptKeys[0]
		h.halt()
		h.must(os.Remove(filepath.Join(h.cfg.StateDir, "ledger.db")))
		later := kit.Value(Rebuild(h.t.Context(), h.cfg, operator.Person{}))(h.t).Info.ReceiptKeys[0]
		h.again()
		h.pass()
		h.halt()
		r := kit.Value(Restore(h.t.Context(), h.cfg, backup, true, operator.Person{}))(h.t)
		want := fmt.Sprint([]string{own, later})
		kit.Want(h.t, "keys of the ledger", fmt.Sprint(r.Info.ReceiptKeys), want)
		kit.Want(h.t, "keys in the mark", fmt.Sprint(kit.Value(drop.ReadReceiptKeys(h.path))(h.t)), want)
		h.again()
		kit.Want(h.t, "keys of the daemon", fmt.Sprint(h.d.Ledger().Info().ReceiptKeys), want)
		kit.Want(h.t, "keys in its mark", fmt.Sprint(kit.Value(drop.ReadReceiptKeys(h.path))(h.t)), want)
		h.halt()
		h.must(os.Chmod(filepath.Join(h.path, ".vaultd", "drop.json"), 0o666))
		r = kit.Value(Restore(h.t.Context(), h.cfg, backup, true, operator.Person{}))(h.t)
		kit.Want(h.t, "keys of a mark that others may write", fmt.Sprint(r.Info.ReceiptKeys), fmt.Sprint([]string{own}))
		h.again()
	})
}
