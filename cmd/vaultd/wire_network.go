package main

import (
	"vaultd/internal/apicall"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
)

// networkCallConfig says where the business network is and how to reach it.
func networkCallConfig(cfg config.Config, env config.Env) apicall.Config {
	calls := callConfig(cfg, env)
	calls.BaseURL, calls.Auth = cfg.Network.BaseURL, wireAuth(cfg.Network.Auth.WithDefaults(), env)
	return calls
}

// newNetworkClient makes the client of the business network, which has an address and an account of its own.
func newNetworkClient(cfg config.Config, env config.Env) (*networkapi.Client, error) {
	api, _, err := apicall.New(networkCallConfig(cfg, env))
	if err != nil {
		return nil, fail(exitConfig, err, "see network in the configuration")
	}
	return networkapi.New(networkapi.Config{API: api, CreditNotes: cfg.Network.CreditNotes, PageSize: cfg.Network.PageSize}), nil
}

// adviseOnNetwork says what to do about a failed call of the network. may is what the account must be allowed to do, like "ask the directory".
func adviseOnNetwork(e *apicall.Error, may string) string {
	switch {
	case apicall.IsOnTheWay(e.Code):
		return present.AdviceOn(e.Code)
	case networkapi.IsNotEnabled(e):
		return "ask the provider to enable this account to " + may + ", and name the request id"
	case e.Denied:
		return "look at network.auth and its secret file, which is read again by itself; if they are right, ask the provider whether this account may " + may + ", and name the request id"
	case e.Overloaded():
		return "the network asks for fewer calls: wait, then ask again"
	case e.Outcome == apicall.Refused:
		return "look at what was asked for; if it is right, ask the provider, and name the request id"
	case e.Outcome == apicall.NotProcessed, e.Code == "unreadable":
		return "look at network.base_url and service.proxy; if they are right, ask the provider, and name the request id"
	}
	return "look at network.base_url, this machine's network, the firewall and service.proxy; vaultd doctor tries them. If they are right, wait and ask again"
}

// wireNotices says how the notifications of the business network are taken in; nil: it is not used.
func wireNotices(cfg config.Config, env config.Env) (*daemon.Notices, error) {
	if cfg.Network.BaseURL == "" {
		return nil, nil
	}
	client, err := newNetworkClient(cfg, env)
	if err != nil {
		return nil, err
	}
	n := &daemon.Notices{Service: client, Every: cfg.Network.Poll}
	if cfg.Network.ReceiveInto != "" {
		n.Receive = &daemon.Receive{Service: networkapi.Receiver{Client: client}, Describe: networkapi.DescribeReceived, Into: cfg.Network.ReceiveInto,
			Confirm: cfg.Network.Confirm == config.ConfirmTechnical, Workers: cfg.Network.Workers, TrustsType: cfg.Network.AnnouncedBy == config.AnnouncedByType}
	}
	return n, nil
}
