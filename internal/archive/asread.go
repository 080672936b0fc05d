package archive

// MaxAsRead bounds each field of AsRead, in bytes.
const MaxAsRead = 500

// AsRead is what a sidecar says, letter by letter, in fields that nobody checked. It helps people to find a folder that was refused
// or repeats another one. Nothing is decided, counted or sent by it.
type AsRead struct {
	Type          string `json:"documentType,omitempty" stored:"1"`
	Number        string `json:"documentId,omitempty" stored:"2"`
	Date          string `json:"documentDate,omitempty" stored:"3"` // perhaps 31.10.2026
	SenderName    string `json:"senderName,omitempty" stored:"4"`
	SenderIDs     string `json:"senderIds,omitempty" stored:"5"` // joined by ", "
	RecipientName string `json:"recipientName,omitempty" stored:"6"`
	RecipientIDs  string `json:"recipientIds,omitempty" stored:"7"` // joined by ", "
	Amount        string `json:"amount,omitempty" stored:"8"`       // perhaps 1.234,56
	Currency      string `json:"currencyCode,omitempty" stored:"9"`
}

// IsZero reports whether nothing could be read.
func (a AsRead) IsZero() bool { return a == AsRead{} }
