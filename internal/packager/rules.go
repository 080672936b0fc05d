package packager

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Rules is what a drop asks of its folders. The zero values of Sidecar, Complete, MaxSize and Compression stand for
// metadata.json, quiet, archive.MaxPackage and default.
type Rules struct {
	Vault    archive.VaultID
	Sidecar  string // name, compared without case
	Complete string // quiet | list (everything named, by `files` or the manifest) | marker

	// Defaults fill fields that a sidecar leaves out or empty. Require names, by
	// field, the values of which the document must have one (text or a list of
	// texts; for a list of ids one of them must be among the document's). Values
	// are string, json.Number, integers, []string or []any of these.
	Defaults, Require map[string]any

	IncludeSidecar bool
	MaxSize        int64  // bytes of the ZIP
	Compression    string // fast | default | max

	// openFile opens a regular file without following links and without blocking;
	// nil is durable.OpenRegular.
	openFile func(root *os.Root, path string) (*os.File, fs.FileInfo, error)
	// isNetwork is set for a folder of the business network: Sidecar is its document then.
	isNetwork bool
	// CutOffPatience, with Now, lets a folder wait as archive.ErrChanged while
	// it changed less long ago than this and has a file that looks cut off,
	// such as a PDF without its trailer. 0: no folder waits for that.
	CutOffPatience time.Duration
	Now            func() time.Time
}

// FindFaults returns what is wrong with the rules themselves, for the check of a configuration. Faults of Defaults and
// Require name the field as "defaults.amount".
func (r Rules) FindFaults() []archive.Fault {
	r = r.withDefaults()
	var faults []archive.Fault
	if r.Vault == "" {
		faults = append(faults, archive.Fault{Field: "vault", Text: "is missing"})
	}
	faults = append(faults, r.findFolderFaults()...)
	_, bad := fromConfig(r.Defaults, "defaults")
	faults = append(faults, bad...)
	return append(faults, r.checkRequire()...)
}

// findFolderFaults returns what is wrong with the rules that folders of every kind have. The rules have their defaults.
func (r Rules) findFolderFaults() (faults []archive.Fault) {
	add := func(field, format string, a ...any) {
		faults = append(faults, archive.Fault{Field: field, Text: fmt.Sprintf(format, a...)})
	}
	taken := IsJunkName(r.Sidecar) || !archive.IsContentName(r.Sidecar) || strings.EqualFold(r.Sidecar, manifestName) || strings.EqualFold(r.Sidecar, markerName)
	if taken || strings.ContainsAny(r.Sidecar, "/\\\x00") || r.Sidecar == "." || r.Sidecar == ".." {
		add("sidecar", "%q cannot be the name of a sidecar; write metadata.json", r.Sidecar)
	}
	if !slices.Contains([]string{"quiet", "list", "marker"}, r.Complete) {
		add("complete", "%q is not known; write quiet, list or marker", r.Complete)
	}
	if r.MaxSize < 0 || r.MaxSize > archive.MaxPackage {
		add("max_size", "is %d bytes; the service takes 1 to %d", r.MaxSize, archive.MaxPackage)
	}
	if _, ok := levels[r.Compression]; !ok {
		add("compression", "%q is not known; write fast, default or max", r.Compression)
	}
	return faults
}

func (r Rules) withDefaults() Rules {
	r.Sidecar = cmp.Or(r.Sidecar, "metadata.json")
	r.Complete = cmp.Or(r.Complete, "quiet")
	r.Compression = cmp.Or(r.Compression, "default")
	r.MaxSize = cmp.Or(r.MaxSize, archive.MaxPackage)
	if r.openFile == nil {
		r.openFile = durable.OpenRegular
	}
	return r
}

// validated returns the rules with their defaults. An error means that the configuration is wrong; no folder is refused for
// it.
func (r Rules) validated() (Rules, error) {
	if faults := r.FindFaults(); len(faults) > 0 {
		return r, fmt.Errorf("use packaging rules: %s %s", faults[0].Field, faults[0].Text)
	}
	return r.withDefaults(), nil
}
