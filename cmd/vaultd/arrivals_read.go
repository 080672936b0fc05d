package main

import (
	"io"
	"os"
	"path"
	"path/filepath"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
	"vaultd/internal/statedir"
)

// receiveRules are the settings that decide what is due of a received document.
func (v view) receiveRules() arrival.Rules {
	return arrival.Rules{Confirm: v.cfg.Network.Confirm == config.ConfirmTechnical}
}

// findReceivedEntry returns the entry that a received document became; isTaken is false where no drop took it yet.
func (v view) findReceivedEntry(x arrival.Arrival) (e ledger.Entry, isTaken bool, err error) {
	key, known, err := v.ledger.FindByID(archive.DeriveReceivedID(x.Document()))
	if err != nil || !known {
		return e, false, err
	}
	return v.ledger.Entry(key)
}

// describeReceived returns who sent a received document, and its number. Both are told by the entry that it became, else by the document
// as it lies here; where neither tells it, they are empty.
func (v view) describeReceived(x arrival.Arrival, e ledger.Entry, isTaken bool) (sender, number string, err error) {
	if isTaken {
		d, read, err := present.ReadMetadata(v.ledger, e)
		switch {
		case err != nil:
			return "", "", err
		case d.Number != "":
			return d.SenderName, d.Number, nil
		case read.Number != "" || read.SenderName != "":
			return read.SenderName, read.Number, nil
		}
	}
	if len(x.Files) == 0 || x.Files[0].Name != arrival.DocumentFile {
		return "", "", nil
	}
	raw, ok := v.readKeptDocument(x.Key, x.Files[0])
	if !ok {
		return "", "", nil
	}
	d, err := networkapi.DescribeReceived(archive.NetworkKind(x.Type), raw)
	if err != nil {
		return "", "", nil // the cause of the arrival reports that
	}
	return d.SenderName, d.Number, nil
}

// readKeptDocument reads a document as it came; ok is false where it is not there any more, or is not what was recorded.
func (v view) readKeptDocument(key archive.Key, f arrival.File) (raw []byte, ok bool) {
	root, err := os.OpenRoot(filepath.Join(v.cfg.StateDir, statedir.ReceivedFolder))
	if err != nil {
		return nil, false
	}
	defer root.Close() // read-only
	file, _, err := durable.OpenRegular(root, path.Join(key.String(), f.Stored))
	if err != nil {
		return nil, false
	}
	defer file.Close() // read-only
	raw, err = io.ReadAll(io.LimitReader(file, f.Size))
	return raw, err == nil && archive.Sum(raw) == f.SHA256
}
