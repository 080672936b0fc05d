package present

import (
	"fmt"
	"io"

	"vaultd/internal/billing"
	"vaultd/internal/sanitize"
)

// Bill is what one calendar year costs, for a vault or for the customer.
type Bill struct {
	Year         int    `json:"year"`
	Vault        string `json:"vault"` // empty: all vaults of the customer
	Documents    uint64 `json:"documents"`
	Unsized      uint64 `json:"unsized"` // of them: their size is not known, and they are left out of what follows
	AverageMB    string `json:"averageMB"`
	Percent      string `json:"percent"` // of what is included
	Level        int    `json:"level"`   // 0, 80, 90 or 100
	Headroom     uint64 `json:"headroom"`
	Transactions string `json:"transactions"` // beyond what is included
	Money        string `json:"money"`
	Currency     string `json:"currency"`

	Forecast *billing.Forecast `json:"forecast"` // to 31 December; null: too early to say
}

// NewBill makes the bill of a summary.
func NewBill(b billing.Bill) Bill {
	line := Bill{Year: b.Year, Vault: string(b.Vault), Documents: b.Documents, Unsized: b.Unsized, AverageMB: string(b.Average), Percent: string(b.Percent), Level: int(b.Level),
		Headroom: b.Headroom, Transactions: string(b.Transactions), Money: string(b.Money), Currency: b.Currency}
	if b.HasForecast {
		line.Forecast = &b.Forecast
	}
	return line
}

// WriteText writes the bill on one line, and its forecast, if there is one, on another.
func (b Bill) WriteText(w io.Writer) {
	fmt.Fprintf(w, "BILLING  %s\n", b)
	if b.Forecast != nil {
		fmt.Fprintf(w, "BILLING  %d %s, forecast: %s\n", b.Year, b.customerOrVault(), b.describeForecast())
	}
}

// customerOrVault says whose bill it is.
func (b Bill) customerOrVault() string {
	if b.Vault == "" {
		return "all vaults"
	}
	return "vault " + sanitize.Text(b.Vault)
}

// describeForecast says what the bill will be on 31 December, and between what bounds.
func (b Bill) describeForecast() string {
	f := b.Forecast
	text := fmt.Sprintf("average %s MB on 31 December (%s to %s)", f.Average, f.Lowest, f.Highest)
	switch {
	case f.Most == 0:
		return text + "; nothing beyond what is included"
	case f.Money != "":
		return text + fmt.Sprintf("; %s beyond what is included (%d to %d), %s %s (%s to %s)", FormatCount(f.Whole, "transaction", "transactions"), f.Least, f.Most, b.Currency, f.Money, f.LeastMoney, f.MostMoney)
	}
	return text + fmt.Sprintf("; %s beyond what is included (%d to %d)", FormatCount(f.Whole, "transaction", "transactions"), f.Least, f.Most)
}

// String returns the bill as people read it: the average first, then how near the limit is.
func (b Bill) String() string {
	text := fmt.Sprintf("%d %s: %s", b.Year, b.customerOrVault(), FormatCount(b.Documents, "document", "documents"))
	if b.Unsized > 0 {
		text += fmt.Sprintf(" (%d of unknown size, left out of what follows)", b.Unsized)
	}
	if b.AverageMB == "" {
		return text + ", average not known"
	}
	text += fmt.Sprintf(", average %s MB, %s %% of what is included", b.AverageMB, b.Percent)
	switch billing.Level(b.Level) {
	case billing.Level80:
		text += "; NEAR THE LIMIT"
	case billing.Level90:
		text += "; VERY NEAR THE LIMIT"
	case billing.LimitReached:
		text += "; LIMIT REACHED"
	}
	if b.Transactions == "0" {
		return text + fmt.Sprintf("; %s left", FormatSize(int64(min(b.Headroom, 1<<62))))
	}
	unit := "transactions" // of which there may be parts: 1.5
	if b.Transactions == "1" {
		unit = "transaction"
	}
	text += fmt.Sprintf("; %s %s beyond it", b.Transactions, unit)
	if b.Money != "" {
		text += fmt.Sprintf(", %s %s", b.Currency, b.Money)
	}
	return text
}
