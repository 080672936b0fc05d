package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// A kept folder that cannot be read is told, and nothing is concluded from it: it is
// not missing, and its receipt is not wrong. The check goes on with the others.
func TestCheck_I23_AReceiptThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{unix.EACCES, unix.EIO, unix.ESTALE} {
		t.Run(fault.Error(), func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.drop("Huber 88", "88", "one", false)
				h.drop("Otto 19", "19", "two", false)
				h.pass()
				huber, otto := h.byFolder()["Huber 88"], h.byFolder()["Otto 19"]
				h.must(os.Remove(filepath.Join(h.path, otto.Dest, "_RECEIPT.json")))
				for at, unread := range map[string]int{"Huber 88": 1, "_archived": 2} {
					f := durable.Hook(func(op, name string, do func() error) error {
						if op == "mount" && name == at { // it is the look at a folder that is about to be entered
							return &fs.PathError{Op: "statx", Path: name, Err: fault}
						}
						return do()
					})
					h.files.Store(&f)
					c := h.d.selfChecker().Check(h.t.Context())
					if c.OK() || c.Failed != "" || len(c.Ledger) != 0 || len(c.Unread) != unread || len(c.Files) != 0 {
						t.Errorf("at %s: check = %+v, want %d unread, and no fault of its own", at, c, unread)
					}
					kit.Holds(t, "unread at "+at, strings.Join(c.Unread, "\n"), huber.Key.String(), fault.Error())
					kit.Lacks(t, "unread at "+at, strings.Join(c.Unread, "\n"), "Huber")
				}
				kit.Holds(t, "the other entry", h.byFolder()["Otto 19"].Cause.Text, `"_RECEIPT.json" is missing`)
				kit.Want(t, "the entry that could not be read", h.byFolder()["Huber 88"].Cause, ledger.Cause{})
				h.mounts("", nil, nil)
				h.must(os.RemoveAll(filepath.Join(h.path, huber.Dest)))
				if c := h.d.selfChecker().Check(h.t.Context()); len(c.Unread) != 0 || c.Kept != 1 {
					t.Errorf("a folder was removed: check = %+v, want one new finding, and all read", c)
				}
				kit.Want(t, "the removed folder", h.byFolder()["Huber 88"].IsSourceMissing(), true)
			})
		})
	}
}

// The same where only the receipt in it may not be read.
func TestCheck_I23_AReceiptWithoutRights(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		e := h.byFolder()["Huber 88"]
		receipt := filepath.Join(h.path, e.Dest, "_RECEIPT.json")
		for at := filepath.Dir(receipt); at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) {
			h.must(os.Chmod(at, 0o777))
		}
		h.must(errors.Join(os.Chmod(receipt, 0), os.Chmod(filepath.Join(h.path, ".vaultd"), 0o755), os.Chmod(filepath.Join(h.path, ".vaultd/drop.json"), 0o644)))
		if os.Getuid() == 0 { // as an ordinary user, on this thread alone
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			h.must(errors.Join(unix.Setfsgid(65534), unix.Setfsuid(65534)))
		}
		var c selfcheck.Result
		err := h.d.selfChecker().CheckFiles(h.t.Context(), &c)
		if os.Getuid() == 0 {
			h.must(errors.Join(unix.Setfsuid(0), unix.Setfsgid(0)))
		}
		if err != nil || len(c.Files) != 0 || len(c.Unread) != 1 || !strings.Contains(c.Unread[0], "permission denied") {
			t.Errorf("check = %+v (error %v), want one unread: permission denied", c, err)
		}
	})
}
