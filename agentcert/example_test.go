package agentcert_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"chancery/agentcert"
	"chancery/capability"
)

// A service puts its operations behind the middleware. All that it needs from the authority is the root certificate.
func ExampleVerifier_Middleware() {
	var root *x509.Certificate // from a file of the service
	verifier := agentcert.NewVerifier([]*x509.Certificate{root}, agentcert.Policy{})
	protect := verifier.Middleware(func(r *http.Request) (capability.Operation, error) {
		if r.Method != http.MethodGet {
			return capability.Operation{}, fmt.Errorf("there is no operation %s", r.Method)
		}
		return capability.Operation{Name: "calendar:read", ReadOnly: true}, nil
	})
	server := &http.Server{
		Handler: protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			decision, _ := agentcert.DecisionFrom(r.Context())
			fmt.Fprintf(w, "%s reads for %s", decision.AgentID, decision.Principal.Identifier)
		})),
		TLSConfig:         &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: 5 * time.Second,
	}
	_ = server.ListenAndServeTLS("server.pem", "server.key")
}

// A principal's text form is for people and database keys.
func ExamplePrincipalUID_String() {
	hash := agentcert.KeyHash([]byte("the principal's SubjectPublicKeyInfo"))
	fmt.Println(agentcert.PrincipalUID{Realm: "example.org", Identifier: "alice", KeyHash: hash[:]})
	// Output: example.org:alice:OAYJpCEYcQlIbf_7FBxAZewHE2IW9yk3jVbBnQsUrZA
}
