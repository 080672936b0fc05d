package campaign

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// publishExtract makes the service offer one extract more. The list tells too few files of some, and one file more is added to the one before
// while it still comes.
func (c *campaign) publishExtract() {
	c.t.Helper()
	all := c.service.PublishedExtracts()
	n, now := len(all), time.Now().UTC().Truncate(time.Second)
	x := emulator.PublishedExtract{ID: fmt.Sprintf("extract-%d", n), Type: archive.DeltaExtract, Name: "books", Start: now.AddDate(0, 0, -1-n%2), End: now, Made: now}
	for i := range 1 + c.r.IntN(3) {
		x.Files = append(x.Files, c.makeExtractFile(n, i))
	}
	if n%3 == 0 {
		x.ToldFiles = 1
	}
	kit.Must(c.t, c.service.PublishExtract(x))
	// Where all files were sent, nobody could know of another one.
	if n > 0 && slices.ContainsFunc(all[n-1].Files, func(f emulator.ExtractFile) bool { return f.Downloads == 0 }) {
		kit.Must(c.t, c.service.PublishExtract(emulator.PublishedExtract{ID: all[n-1].ID, Files: []emulator.PublishedFile{c.makeExtractFile(n-1, len(all[n-1].Files))}}))
	}
}

func (c *campaign) makeExtractFile(n, i int) emulator.PublishedFile {
	c.t.Helper()
	content := make([]byte, 1+c.r.IntN(400_000))
	kit.Value(rand.NewChaCha8([32]byte{byte(n), byte(i)}).Read(content))(c.t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w := kit.Value(z.Create("rows.json"))(c.t)
	kit.Value(w.Write(content))(c.t)
	kit.Must(c.t, z.Close())
	return emulator.PublishedFile{Table: "IA_INVOICE", Name: fmt.Sprintf("IA_INVOICE_%d_%d.zip", n, i), Content: b.Bytes()}
}

// checkAcknowledged demands that what the service knows as acknowledged is held whole. To look at the custody changes nothing there.
func (c *campaign) checkAcknowledged(l *boltledger.Ledger) (problems []string) {
	c.t.Helper()
	acknowledged := slices.DeleteFunc(c.service.PublishedExtracts(), func(x emulator.Extract) bool { return !x.IsAcknowledged })
	if len(acknowledged) == 0 {
		return nil
	}
	info := l.Info()
	kept, err := custody.Open(c.path("custody"), info.ID, info.Environment, nil)
	if err != nil {
		return []string{fmt.Sprintf("I30: extracts are acknowledged, and the custody does not open: %v", err)}
	}
	defer kept.Close()
	for _, x := range acknowledged {
		m, err := kept.Find(archive.ExtractID(x.ID))
		if err == nil {
			err = kept.Verify(c.t.Context(), m)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("I30: extract %s is acknowledged, and not whole in custody: %v", x.ID, err))
		}
		for _, f := range x.Files {
			if err == nil && !slices.ContainsFunc(m.Files, func(had custody.HeldFile) bool { return had.Name == f.Name && had.SHA256.String() == f.SHA256 }) {
				problems = append(problems, fmt.Sprintf("I30: extract %s is acknowledged, and %s of it is not in custody as the service has it", x.ID, f.Name))
			}
		}
	}
	return problems
}

// openExtracts names the extracts that are not acknowledged, and has more downloads allowed where a person has to.
func (c *campaign) openExtracts() (left []string) {
	c.t.Helper()
	rows, said, code := c.command("extracts", "--json")
	if code != 0 {
		return []string{fmt.Sprintf("no list of extracts: exit %d: %s", code, said)}
	}
	state := map[string]string{}
	for in := json.NewDecoder(bytes.NewReader(rows)); in.More(); {
		var row struct{ ID, State, Need string }
		kit.Must(c.t, in.Decode(&row))
		if state[row.ID] = row.State; row.Need != "" {
			c.command("extracts", "retry", row.ID)
		}
	}
	for _, x := range c.service.PublishedExtracts() {
		if state[x.ID] != "acknowledged" {
			left = append(left, fmt.Sprintf("%s is %q", x.ID, state[x.ID]))
		}
	}
	return left
}

// judgeExtracts holds the end of all extracts to what the service has.
func (c *campaign) judgeExtracts(l *boltledger.Ledger) {
	c.t.Helper()
	for _, p := range c.checkAcknowledged(l) {
		c.t.Error(p)
	}
	for _, x := range c.service.PublishedExtracts() {
		c.extracts++
		kit.Check(c.t, x.IsAcknowledged, "extract %s is not acknowledged at the service", x.ID)
		for _, f := range x.Files {
			c.downloads += f.Downloads
		}
	}
	parts := kit.Value(filepath.Glob(c.path("custody", "extracts", "*", "files", "*.part")))(c.t)
	if mark, err := os.Stat(c.path("custody", "custody.json")); err != nil || mark.Size() == 0 || len(parts) > 0 {
		c.t.Errorf("the custody has the parts %q, and its mark: %v", parts, err)
	}
}
