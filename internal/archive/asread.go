package archive

// MaxAsRead bounds each field of AsRead, in bytes.
const MaxAsRead = 500

// AsRead is what a sidecar says, letter by letter, in fields that nobody checked. It serves to find and to show a folder
// that was refused or repeats another one. Nothing is ever decided, counted or sent by it.
type AsRead struct {
	Type          string // documentType
	Number        string // documentId
	Date          string // documentDate, perhaps 31.10.2026
	SenderName    string
	SenderIDs     string // joined by ", "
	RecipientName string
	RecipientIDs  string // joined by ", "
	Amount        string // perhaps 1.234,56
	Currency      string
}

// IsZero reports whether nothing could be read.
func (a AsRead) IsZero() bool { return a == AsRead{} }
