package present

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// SentCopy is the copy of a sent document that was put into a drop folder of the archive. Only IsTaken is set, to false, while its folder lies there.
type SentCopy struct {
	IsTaken bool   `json:"isTaken"`
	Key     string `json:"key"` // of its entry
	Drop    string `json:"drop"`
	Folder  string `json:"folder"`
	State   string `json:"state"`
}

// findSentCopy returns the copy of a sent document; nil: none was made. The error is the ledger's.
func findSentCopy(l Ledger, e ledger.Entry) (*SentCopy, error) {
	if !e.Copied {
		return nil, nil
	}
	key, known, err := l.FindByID(archive.DeriveSentID(e.OwnNumber()))
	if err != nil || !known {
		return &SentCopy{}, err
	}
	c, known, err := l.Entry(key)
	if err != nil || !known {
		return &SentCopy{}, err
	}
	return &SentCopy{IsTaken: true, Key: key.String(), Drop: c.Drop, Folder: c.Folder, State: c.State.String()}, nil
}

// addSentCopy names the copy of a sent document.
func (p *Page) addSentCopy(c *SentCopy) {
	switch {
	case c == nil:
	case !c.IsTaken:
		p.AddLine("Its copy", "lies in its drop folder of the archive, and was not taken yet")
	default:
		p.AddLine("Its copy", `%s: "%s" (drop %s), entry %s`, c.State, sanitize.Text(c.Folder), sanitize.Text(c.Drop), c.Key)
	}
}
