package server_test

import (
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/server"
)

func TestConfigurationIsHeldToItsBounds(t *testing.T) {
	t.Parallel()
	for setting, code := range map[string]string{
		"CHANCERY_AGENT_LIFETIME=24h": "", "CHANCERY_AGENT_LIFETIME=25h": "config_invalid",
		"CHANCERY_AGENT_SKEW=1m": "", "CHANCERY_AGENT_SKEW=61s": "config_invalid",
		"CHANCERY_NAME_HOSTS=two words": "name_invalid", "CHANCERY_NAME_HOSTS=ca.example.org,10.0.0.1": "",
		"CHANCERY_NAME_TRUST_DOMAIN=example.org": "", "CHANCERY_NAME_TRUST_DOMAIN=ex ample": "config_invalid",
		"CHANCERY_NAME_PUBLIC_URL=": "", "CHANCERY_NAME_PUBLIC_URL=http://ca.example.org/x": "", "CHANCERY_NAME_PUBLIC_URL=ca.example.org": "config_invalid",
		"CHANCERY_LISTEN_HTTPS=:0": "", "CHANCERY_LISTEN_HTTPS=[::1]:8443": "", "CHANCERY_LISTEN_HTTPS=8443": "config_invalid", "CHANCERY_LISTEN_MTLS=:84440": "config_invalid",
		"CHANCERY_LISTEN_PUBLIC=": "", "CHANCERY_LIMIT_CONNECTIONS=0": "config_invalid", "CHANCERY_LIMIT_RATE=-1": "config_invalid",
		"CHANCERY_LOG_LEVEL=debug": "", "CHANCERY_LOG_LEVEL=loud": "config_invalid",
		"CHANCERY_LOG_FORMAT=json": "", "CHANCERY_LOG_FORMAT=xml": "config_invalid",
	} {
		if _, _, err := server.Configure(t.TempDir(), []string{setting}, nil); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", setting, err, code)
		}
	}
}
