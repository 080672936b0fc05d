package simulation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// packageSealed lets the plan damage a package that was just sealed, at once or after the delay of the strike.
// The daemon does not hear of it: the disk, or somebody, changes the file behind its back.
func (w *World) packageSealed(op, name string) {
	_, err := archive.ParseKey(strings.TrimSuffix(name, filepath.Ext(name))) // what people dropped, and what is copied, is renamed too
	if op != "rename" || err != nil || !slices.Contains([]string{".zip", ".pdf"}, filepath.Ext(name)) {
		return
	}
	s := w.fate.chooseStrike(Packages, "sealed", name)
	harm := map[Blow]func(string) error{Fail: changeByte, FailDone: cutByte}[s.Blow]
	if harm == nil {
		return
	}
	path := filepath.Join(w.stateDir(), "spool", name)
	if s.Call.Delay == 0 {
		w.failOn(harm(path))
		return
	}
	time.AfterFunc(s.Call.Delay, func() { _ = harm(path) }) // it may be gone by then
}

// changeByte changes one byte of a package, in a ZIP in a time that no checksum of the format covers: only the digest of the whole tells.
func changeByte(path string) error {
	const modified = 10 // offset of the first file's time
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, modified); err != nil {
		return err
	}
	b[0] ^= 0xff
	_, err = f.WriteAt(b, modified)
	return err
}

// cutByte takes the last byte off.
func cutByte(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()-1)
}
