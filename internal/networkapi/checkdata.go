package networkapi

import "fmt"

// Fields of data that the rules below name.
var (
	// identified are objects that must have an id where they are there.
	identified = []string{"externalDocumentIdentifier", "orderReference", "additionalDocumentReference"}
	parties    = []string{"accountingSupplierParty", "accountingCustomerParty", "buyerCustomerParty", "sellerSupplierParty", "deliveryParty"}
)

// checkData checks what the network requires of the data of a document.
func (c *checker) checkData(data *node) {
	c.requireText(data, "", "documentCurrencyCode", "write the ISO 4217 code, like EUR")
	for _, name := range identified {
		if object := c.optionalObject(data, "", name); object != nil {
			c.requireID(object, name)
		}
	}
	for i, reference := range c.optionalList(data, "", "contractDocumentReferences") {
		c.requireID(reference, fmt.Sprintf("contractDocumentReferences[%d]", i))
	}
	for _, name := range parties {
		if party := c.optionalObject(data, "", name); party != nil {
			c.checkParty(party, name)
		}
	}
	for i, charge := range c.optionalList(data, "", "allowanceCharges") {
		c.checkCharge(charge, fmt.Sprintf("allowanceCharges[%d]", i))
	}
	if means := c.optionalObject(data, "", "paymentMeans"); means != nil {
		c.checkPaymentMeans(means, "paymentMeans")
	}
}

func (c *checker) requireID(object *node, field string) (*node, string) {
	return c.requireText(object, field, "id", "write it, or leave the whole field out")
}

// checkParty checks one party with its identifiers.
func (c *checker) checkParty(party *node, field string) {
	c.requireText(party, field, "partyName", "write the name of the party")
	if endpoint := c.optionalObject(party, field, "endpoint"); endpoint != nil {
		c.checkSchemeAndID(endpoint, join(field, "endpoint"))
	}
	for i, id := range c.optionalList(party, field, "partyIdentifications") {
		c.checkSchemeAndID(id, fmt.Sprintf("%s.partyIdentifications[%d]", field, i))
	}
}

// checkSchemeAndID checks an object of an id and its scheme. Without a scheme nothing can be said about the form of the id.
func (c *checker) checkSchemeAndID(object *node, field string) {
	idNode, id := c.requireID(object, field)
	schemeNode, scheme := c.optionalText(object, field, "schemeId")
	if schemeNode == nil {
		return
	}
	if idNode == nil {
		id = ""
	}
	text, wrongScheme := checkIdentifier(scheme, id)
	switch {
	case wrongScheme:
		c.addFault(schemeNode.At, join(field, "schemeId"), text)
	case text != "" && idNode != nil:
		c.addFault(idNode.At, join(field, "id"), text)
	}
}

// checkCharge checks one allowance or charge.
func (c *checker) checkCharge(charge *node, field string) {
	indicator := charge.Find("changeIndicator")
	if indicator == nil {
		c.addFault(charge.At, join(field, "changeIndicator"), "is missing; write true for a charge, false for a discount.")
	} else if !isBool(indicator) {
		c.addFault(indicator.At, join(field, "changeIndicator"), "must be true or false, without quotes.")
	}
	if charge.Find("amount") == nil { // checkValues says whether it is a number
		c.addFault(charge.At, join(field, "amount"), "is missing; write a number, like 12.50.")
	}
}

// checkPaymentMeans checks how a document is to be paid.
func (c *checker) checkPaymentMeans(means *node, field string) {
	c.requireText(means, field, "paymentMeansCode", "write the UN/ECE 4461 code as a text, like \"31\"")
	if identifier := c.optionalObject(means, field, "paymentIdentifier"); identifier != nil {
		c.requireID(identifier, join(field, "paymentIdentifier"))
	}
	for i, account := range c.optionalList(means, field, "financialAccounts") {
		above := fmt.Sprintf("%s.financialAccounts[%d]", field, i)
		for j, id := range c.optionalList(account, above, "ids") {
			c.checkAccountID(id, fmt.Sprintf("%s.ids[%d]", above, j))
		}
	}
}

// checkAccountID checks the number of an account. Its schemes are not those of parties; only an IBAN has a form that is known.
func (c *checker) checkAccountID(id *node, field string) {
	n, text := c.requireID(id, field)
	if _, scheme := c.optionalText(id, field, "schemeId"); n != nil && scheme == "IBAN" {
		if wrong := checkIBAN(text); wrong != "" {
			c.addFault(n.At, join(field, "id"), wrong)
		}
	}
}
