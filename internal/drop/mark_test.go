package drop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vaultd/internal/test/kit"
)

// I12: the keys in a mark count where root and vaultd alone could write it.
func TestReadReceiptKeys_I12_OnlyWhatNobodyElseCouldWrite(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint("key ", i)
	}
	type row struct {
		keys      []string
		change    func(dir, mark string) error
		want      int
		untrusted bool
		asRoot    bool
	}
	kit.Rows(t, map[string]row{
		"AsWritten":        {keys: []string{"one", "two"}, want: 2},
		"None":             {},
		"MoreThanAreEver":  {keys: many, want: mostReceiptKeys},
		"GroupMayWriteIt":  {keys: []string{"one"}, change: func(_, mark string) error { return os.Chmod(mark, 0o660) }, untrusted: true},
		"GroupMayReplace":  {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chmod(dir, 0o770) }, untrusted: true},
		"OthersMayReplace": {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chmod(dir, 0o702) }, untrusted: true},
		"FileOfAnother":    {keys: []string{"one"}, change: func(_, mark string) error { return os.Chown(mark, 4711, -1) }, untrusted: true, asRoot: true},
		"FolderOfAnother":  {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chown(dir, 4711, -1) }, untrusted: true, asRoot: true},
	}, func(t *testing.T, row row) {
		if row.asRoot && os.Geteuid() != 0 {
			kit.Missing(t, "root, to make a file of another user")
		}
		path := t.TempDir()
		f, err := Open(Config{Path: path, Name: "acme", LedgerID: "L1", Environment: "test", Epoch: 1, ReceiptKeys: row.keys})
		kit.Must(t, err)
		kit.Must(t, f.Close())
		dir := filepath.Join(path, vaultdDir)
		if row.change != nil {
			kit.Must(t, row.change(dir, filepath.Join(dir, markFile)))
		}
		keys, err := ReadReceiptKeys(path)
		_, untrusted := errors.AsType[*UntrustedKeysError](err)
		kit.Check(t, untrusted == row.untrusted && (err == nil || untrusted), "%v, want untrusted %v", err, row.untrusted)
		kit.Check(t, len(keys) == row.want && slices.Equal(keys, row.keys[:row.want]), "keys %q, want the first %d", keys, row.want)
	})
}

// A ledger that was rebuilt, or that is the first with keys, writes its keys
// into the mark of a folder that is its own.
func TestOpen_I12_TheMarkFollowsTheKeys(t *testing.T) {
	path := t.TempDir()
	for _, keys := range [][]string{nil, {"one"}, {"two", "one"}} {
		f := kit.Value(Open(Config{Path: path, Name: "acme", LedgerID: "L1", Environment: "test", Epoch: 1, ReceiptKeys: keys}))(t)
		kit.Must(t, f.Close())
		found := kit.Value(ReadReceiptKeys(path))(t)
		kit.Want(t, "keys", fmt.Sprint(found), fmt.Sprint(keys))
	}
}
