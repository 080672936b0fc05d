package drop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// templateRecord, in .vaultd, tells which of the template's files are as vaultd wrote them: their digests by name.
const templateRecord = "template.json"

// WriteTemplate keeps _template: each file is made where it is missing, and made anew where it still is as vaultd wrote it.
// What people changed is theirs and stays. After a crash in between a file counts as theirs at worst.
func (f *Folder) WriteTemplate(files ...NoteFile) error {
	dir, err := f.step(f.root, templateDir, true)
	if err != nil {
		return fmt.Errorf("write %s: %w", templateDir, err)
	}
	defer dir.Close()
	wrote := f.templateRecord()
	for _, n := range files {
		if strings.HasSuffix(n.Name, ".txt") {
			n.Data = forNotepad(string(n.Data))
		}
		sum := archive.Sum(n.Data).String()
		has, there := digestOf(dir, n.Name)
		if there && (has == sum || has != wrote[n.Name]) {
			continue
		}
		if err := f.write(dir, n); err != nil {
			return fmt.Errorf("write %s/%s: %w", templateDir, n.Name, err)
		}
		if err := dir.Sync(); err != nil { // before the record says so
			return fmt.Errorf("write %s/%s: %w", templateDir, n.Name, err)
		}
		wrote[n.Name] = sum
		data, err := json.Marshal(wrote)
		if err == nil {
			err = f.vaultd.WriteFile(templateRecord, append(data, '\n'), 0o600)
		}
		if err != nil {
			return fmt.Errorf("write %s/%s: %w", vaultdDir, templateRecord, err)
		}
	}
	return nil
}

// templateRecord reads what was written; empty where that cannot be told.
func (f *Folder) templateRecord() map[string]string {
	wrote := map[string]string{}
	file, _, err := durable.OpenRegular(f.vaultd.Root(), templateRecord)
	if err != nil {
		return wrote
	}
	defer file.Close() // read-only
	data, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil || json.Unmarshal(data, &wrote) != nil || wrote == nil {
		return map[string]string{}
	}
	return wrote
}

// digestOf tells whether anything bears a name, and its digest: empty for what is large or no regular file.
func digestOf(dir *durable.Dir, name string) (sum string, there bool) {
	file, info, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return "", !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close() // read-only
	if info.Size() > 1<<20 {
		return "", true
	}
	data, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return "", true
	}
	return archive.Sum(data).String(), true
}
