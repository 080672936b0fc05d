package main_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// I12: the ledger has the folder's owner and up to eight other owners of files
// in it, whatever becomes of the folder. show, why and the receipt name them,
// and so does a ledger that was rebuilt from receipts.
func TestOwners_I12_FilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give files to other users")
	}
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{})
	s := newSite(t, url, fast)
	s.addPDFDrop(url)
	// given drops a folder of the clerk, in which some files are of others.
	given := func(folder, number, documentType string, others map[string]int) {
		files := map[string][]byte{"a.pdf": []byte("a " + number), "b.pdf": []byte("b " + number)}
		for name := range others {
			if name != "metadata.json" {
				files[name] = []byte(name[:1] + " " + number)
			}
		}
		s.drop("acme", folder, files, map[string]any{"documentType": documentType, "documentId": number, "documentDate": "2026-10-31"})
		dir := filepath.Join(s.dir, "acme", folder)
		kit.Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chown(path, clerk, -1) }))
		for name, uid := range others {
			kit.Must(t, os.Chown(filepath.Join(dir, name), uid, -1))
		}
	}
	many := map[string]int{}
	for i := range 10 {
		many[fmt.Sprintf("%d.xml", i)] = clerk + 1 + i
	}
	given("Alone", "1", "Invoice", nil)
	given("Changed", "2", "Invoice", map[string]int{"a.pdf": clerk + 2, "b.pdf": clerk + 2, "metadata.json": 0})
	given("Many", "3", "Invoice", many)
	given("Refused", "4", "Nonsense", map[string]int{"a.pdf": clerk + 2})
	s.dropPDF("scan.pdf", 1)
	kit.Must(t, os.Chown(filepath.Join(s.dir, "scans", "scan.pdf"), clerk+2, -1))
	s.must(exitPerson, "run", "--once", "--wait")
	given("Again", "1", "Invoice", map[string]int{"b.pdf": clerk + 2})
	s.must(exitDone, "run", "--once", "--wait")

	want := map[string][]int{"Alone": {}, "Changed": {0, clerk + 2}, "Many": {clerk + 1, clerk + 2, clerk + 3, clerk + 4, clerk + 5, clerk + 6, clerk + 7, clerk + 8},
		"Refused": {clerk + 2}, "scan.pdf": {}, "Again": {clerk + 2}}
	owners := func(folder string) (got []int) {
		var shown struct{ FileOwners []int }
		kit.Must(t, json.Unmarshal([]byte(s.must(exitDone, "show", "--json", folder)), &shown))
		return shown.FileOwners
	}
	for folder, uids := range want {
		kit.Want(t, "owners of files of "+folder, owners(folder), uids)
	}
	kit.Holds(t, "show", s.must(exitDone, "show", "Changed"), "Folder of     uid 47111\nFiles also of root (uid 0), uid 47113\n")
	kit.Holds(t, "show", s.must(exitDone, "show", "Many"), "uid 47119, perhaps others\n")
	kit.Lacks(t, "show", s.must(exitDone, "show", "Alone"), "Files also of")
	kit.Holds(t, "why", s.must(exitDone, "why", "Changed"), "a folder of uid 47111, with files of root (uid 0), uid 47113")
	kit.Holds(t, "receipt", s.must(exitDone, "receipt", "Changed"), "Files also of   root (uid 0), uid 47113")
	written := kit.Value(os.ReadFile(filepath.Join(s.dir, "acme/_archived", month(t, s, "acme"), "Changed", "_RECEIPT.json")))(t)
	kit.Holds(t, "_RECEIPT.json", string(written), "\"fileOwners\": [\n    0,\n    47113\n  ]")

	s.move("state", "lost")
	s.must(exitDone, "rebuild", "--reason", "disk failed, no backup")
	for _, folder := range []string{"Alone", "Changed", "Many"} {
		kit.Want(t, "owners of files of "+folder+" from the receipt", owners(folder), want[folder])
	}
}
