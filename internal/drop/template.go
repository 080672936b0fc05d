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

// templateRecord is a file in .vaultd. It holds the digests, by name, of the template files as vaultd wrote them.
const templateRecord = "template.json"

// WriteTemplate keeps the files in _template. It makes a file that is missing, and makes a file anew that still is as vaultd
// wrote it. A file that people changed is theirs and stays.
func (f *Folder) WriteTemplate(files ...NoteFile) error {
	dir, err := f.openOrMakeShared(f.root, templateDir)
	if err != nil {
		return fmt.Errorf("write %s: %w", templateDir, err)
	}
	defer dir.Close()
	written := f.readTemplateRecord()
	for _, n := range files {
		if strings.HasSuffix(n.Name, ".txt") {
			n.Data = encodeForNotepad(string(n.Data))
		}
		sum := archive.Sum(n.Data).String()
		present, exists := readDigest(dir, n.Name)
		if exists && (present == sum || present != written[n.Name]) {
			continue
		}
		// The file is synced before the record names it. A crash in between leaves a file that the record does not know: from then
		// on it counts as people's own and is not written again.
		if err := f.writeNote(dir, n); err != nil {
			return fmt.Errorf("write %s/%s: %w", templateDir, n.Name, err)
		}
		if err := dir.Sync(); err != nil {
			return fmt.Errorf("write %s/%s: %w", templateDir, n.Name, err)
		}
		written[n.Name] = sum
		data, err := json.Marshal(written)
		if err == nil {
			err = f.vaultd.WriteFile(templateRecord, append(data, '\n'), 0o600)
		}
		if err != nil {
			return fmt.Errorf("write %s/%s: %w", vaultdDir, templateRecord, err)
		}
	}
	return nil
}

// readTemplateRecord reads the record. It is empty where the record is missing or unreadable.
func (f *Folder) readTemplateRecord() map[string]string {
	written := map[string]string{}
	file, _, err := durable.OpenRegular(f.vaultd.Root(), templateRecord)
	if err != nil {
		return written
	}
	defer file.Close() // read-only
	data, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil || json.Unmarshal(data, &written) != nil || written == nil {
		return map[string]string{}
	}
	return written
}

// readDigest reports whether anything has that name, and returns its digest: empty for a large file or something else.
func readDigest(dir *durable.Dir, name string) (sum string, exists bool) {
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
