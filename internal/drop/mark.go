package drop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/durable"
)

// OwnershipMark says which ledger a drop folder belongs to. It is the content of .vaultd/drop.json.
type OwnershipMark struct {
	LedgerID    string   `json:"ledger"`
	Environment string   `json:"environment"`
	Epoch       uint64   `json:"epoch"`
	ReceiptKeys []string `json:"receiptKeys,omitempty"` // public keys that its receipts are signed with, as ledger.Info has them
}

func (m OwnershipMark) equal(o OwnershipMark) bool {
	return m.LedgerID == o.LedgerID && m.Environment == o.Environment && m.Epoch == o.Epoch && slices.Equal(m.ReceiptKeys, o.ReceiptKeys)
}

// UntrustedKeysError says why the keys in a mark are untrusted: another user
// may have written them.
type UntrustedKeysError struct{ What string }

func (e *UntrustedKeysError) Error() string { return e.What }

// ReadReceiptKeys returns the keys that the mark of the drop folder at path
// names. It is for callers that have only the mark to check receipts with: the
// error is an [*UntrustedKeysError] where others than root and this user could
// have written the mark, or where owners and rights are not those of the
// server.
func ReadReceiptKeys(path string) (keys []string, err error) {
	vaultd, err := openVaultdDir(path)
	if vaultd == nil {
		return nil, err
	}
	defer vaultd.Close() // read-only
	m, err := readMark(vaultd)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(m.ReceiptKeys) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the mark of %q: %w", path, err)
	}
	dir, err := vaultd.Stat()
	if err != nil {
		return nil, err
	}
	file, err := vaultd.Root().Lstat(markFile)
	if err != nil {
		return nil, err
	}
	network, err := vaultd.NetworkFileSystem()
	if err != nil {
		return nil, err
	}
	for _, info := range []fs.FileInfo{dir, file} {
		if owner := sysStat(info).Uid; owner != 0 && int(owner) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			return nil, &UntrustedKeysError{fmt.Sprintf("%s/%s was written by user %s, or others may write it (%04o)", vaultdDir, markFile, userName(owner), info.Mode().Perm())}
		}
	}
	if slices.Contains(withoutOwners, network) {
		return nil, &UntrustedKeysError{fmt.Sprintf("%s/%s is on a share of type %s, which does not say who wrote it", vaultdDir, markFile, network)}
	}
	return m.ReceiptKeys[:min(len(m.ReceiptKeys), MostReceiptKeys)], nil
}

// withoutOwners are the network file systems whose owners and rights are those
// that the mount gives to everything.
var withoutOwners = []string{"cifs", "smb", "fuse", "9p", "ncp", "vboxsf", "vmhgfs"}

// MostReceiptKeys bounds the mark, which is read up to 4,096 bytes: each rebuild
// adds one key, the newest first.
const MostReceiptKeys = 32

// ReadMark reads the mark of the drop folder at path. It takes no lock and changes nothing. ok is false where the folder is
// there without a mark. The error wraps [ErrUnavailable] where there is no folder.
func ReadMark(path string) (m OwnershipMark, ok bool, err error) {
	vaultd, err := openVaultdDir(path)
	if vaultd == nil {
		return m, false, err
	}
	defer vaultd.Close() // read-only
	m, err = readMark(vaultd)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read the mark of %q: %w", path, err)
	}
	return m, true, nil
}

// CheckMark compares the mark of the drop folder at path with ours, without a lock. The error is a [*ForeignError] when the
// mark is another's. A folder without a mark belongs to nobody and passes.
func CheckMark(path string, ours OwnershipMark) error {
	m, ok, err := ReadMark(path)
	if err != nil || !ok {
		return err
	}
	return compareMarks(path, m, ours)
}

// TakeOverFolder writes a mark with a later epoch into a drop folder that is ours, without waiting for a process that works in
// it: that process sees the mark at its next step and stops. The error is a [*ForeignError] when the folder belongs to another
// ledger or to a later epoch. A folder without a mark gets it when it is opened.
func TakeOverFolder(path string, m OwnershipMark) error {
	vaultd, err := openVaultdDir(path)
	if vaultd == nil {
		return err
	}
	defer vaultd.Close() // what was written is synced
	found, err := readMark(vaultd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the mark of %q: %w", path, err)
	}
	if err := compareMarks(path, found, m); err != nil || found.equal(m) {
		return err
	}
	if _, err := adaptToMount(vaultd); err != nil {
		return err
	}
	// A crash here leaves the old mark or the new one. The same call finishes the work: both pass the comparison.
	if err := writeMark(vaultd, m); err != nil {
		return fmt.Errorf("write the mark of %q: %w", path, err)
	}
	return nil
}

// openVaultdDir opens .vaultd in the drop folder at path, and nothing else of it. It returns nil where there is none.
func openVaultdDir(path string) (*durable.Dir, error) {
	root, err := durable.Open(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() // read-only
	vaultd, err := root.OpenDir(vaultdDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return vaultd, err
}

// lockAndCheckMark locks the drop folder, then makes sure that it is ours. It reads the mark before it writes anything.
func (f *Folder) lockAndCheckMark() (err error) {
	f.lock, err = durable.OpenLock(f.vaultd.Root(), lockFile)
	if err != nil {
		return err
	}
	// The kernel releases the lock when the process dies, so a crash leaves nothing that keeps the next start out.
	switch err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder, _ := io.ReadAll(io.LimitReader(f.lock, 200)) // for the message only
		return &LockedError{Path: f.cfg.Path, Holder: strings.ToValidUTF8(strings.TrimSpace(string(holder)), "?")}
	case err != nil:
		return fmt.Errorf("lock %s/%s: %w", vaultdDir, lockFile, err)
	}
	if f.modes, err = adaptToMount(f.vaultd); err != nil {
		return err
	}
	if f.modes.Decide {
		f.root.IgnoreModeErrors()
	}
	if err := f.checkPrivate(f.vaultd, vaultdDir); err != nil {
		return err
	}
	if err := f.checkOrWriteMark(); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	holder := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	// The holder's name is for people only, so on a full disk the lock holds without it. The old text is overwritten before the
	// file is cut, so that the write needs no new space.
	if n, err := f.lock.WriteAt([]byte(holder), 0); err == nil {
		_ = f.lock.Truncate(int64(n))
	}
	return nil
}

// checkOrWriteMark compares the mark with our ledger, and writes it where the folder is new or the ledger has a later epoch.
func (f *Folder) checkOrWriteMark() error {
	ours := f.ourMark()
	found, err := readMark(f.vaultd)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.cfg.HasWorkedHere:
		return fmt.Errorf("%w: %q has no %s/%s any more", ErrUnavailable, f.cfg.Path, vaultdDir, markFile)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := compareMarks(f.cfg.Path, found, ours); err != nil || found.equal(ours) {
			return err
		}
	}
	// A crash here leaves the old mark, or none where there was none. The next start writes it: we hold the lock.
	return writeMark(f.vaultd, ours)
}

func (f *Folder) ourMark() OwnershipMark {
	return OwnershipMark{f.cfg.LedgerID, f.cfg.Environment, f.cfg.Epoch, f.cfg.ReceiptKeys}
}

// compareMarks returns a [*ForeignError] when a drop folder with the mark found is not ours.
func compareMarks(path string, found, ours OwnershipMark) error {
	foreign := &ForeignError{Path: path, LedgerID: found.LedgerID, Environment: found.Environment, Epoch: found.Epoch}
	switch {
	case found.LedgerID != ours.LedgerID:
		foreign.What = "another ledger"
	case found.Environment != ours.Environment:
		foreign.What = "another environment"
	case found.Epoch > ours.Epoch:
		foreign.What = laterEpoch
	default:
		return nil
	}
	return foreign
}

func readMark(vaultd *durable.Dir) (m OwnershipMark, err error) {
	file, _, err := durable.OpenRegular(vaultd.Root(), markFile)
	if err != nil {
		return m, err
	}
	defer file.Close() // read-only
	data, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil || m.LedgerID == "" {
		return m, fmt.Errorf("%s/%s is not readable; whose folder this is cannot be told", vaultdDir, markFile)
	}
	return m, nil
}

func writeMark(vaultd *durable.Dir, m OwnershipMark) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return vaultd.WriteFile(markFile, append(data, '\n'), 0o600)
}
