package books

import "slices"

// dataSets are the tables of each data set of the service, as its specification
// lists them. Each data set has extracts of its own, which may have one name.
var dataSets = []dataSet{
	{"Invoice", []string{"IA_INVOICE", "IA_INVOICE_ROW", "IA_CODING_ROW", "IA_INVOICE_ORDER_NUMBER", "IA_INVOICE_DELIVERY_NOTE"}},
	{"User", []string{"ADM_USER_DATA", "ADM_ORGANIZATION_ELEMENT", "ADM_USER_GROUP", "ADM_USER_ADMIN_PERMISSION", "ADM_USER_GROUP_MEMBER", "ADM_COST_CENTER"}},
	{"Supplier", []string{"ADM_SUPPLIER", "ADM_SUPPLIER_ADDRESS", "ADM_SUPPLIER_ADDRESS_PART"}},
	{"Imported purchase order", []string{"OM_ORDER_DATA", "OM_ORDER_ROW", "OM_GOODS_RECEIPT", "OM_CODING_ROW"}},
	{"Procurement", []string{"PR_PURCHASE_REQ", "PR_PURCHASE_REQ_LINE", "PR_PURCHASE_ORDER", "PR_PURCHASE_ORDER_LINE", "BUDGET_ACCOUNT", "BUDGET_LINE", "PR_LINE_CODING",
		"GOODS_RECEIPT_DOCUMENT", "PO_LINE_CODING", "WF_PE_PROCESS_TASK"}},
	{"Invoice history", []string{"IA_ACTION_LOG"}},
	{"Process", []string{"PE_PROCESS_TASK"}},
}

type dataSet struct {
	name   string
	tables []string
}

// dataSetOf returns the data set of a table. A table that the specification does
// not list is one alone.
func dataSetOf(table string) dataSet {
	for _, d := range dataSets {
		if slices.Contains(d.tables, table) {
			return d
		}
	}
	return dataSet{table, []string{table}}
}

// content says what an extract has of the data set that is asked about. It is
// stored in books.db.
type content uint8

const (
	noTable     content = iota // it has no file of a table
	otherTables                // it has tables of other data sets alone
	ownTables                  // it has a table of the data set
)
