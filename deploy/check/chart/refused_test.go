package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// Wrong values are refused before anything is rendered, and the complaint names the place.
func TestValues_WrongOnesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ values, want string }{
		"a name that does not exist":         {`consumers: {}`, "'consumers' not allowed"},
		"a slip of the pen inside":           {`consumer: {replica: 3}`, "at '/consumer': additional properties 'replica' not allowed"},
		"a setting that does not exist":      {`settings: {DOCKET_BATCH_MAX_RECORD: 5}`, "at '/settings': additional properties 'DOCKET_BATCH_MAX_RECORD' not allowed"},
		"a setting of another program":       {`consumer: {settings: {DOCKET_DESK_GROUP: g}}`, "at '/consumer/settings': additional properties 'DOCKET_DESK_GROUP' not allowed"},
		"a secret as a setting":              {`settings: {DOCKET_DATABASE_URL: "postgres://u:p@h/d"}`, "'DOCKET_DATABASE_URL' not allowed"},
		"the path of a secret as a setting":  {`settings: {DOCKET_DATABASE_URL_FILE: /x}`, "'DOCKET_DATABASE_URL_FILE' not allowed"},
		"what has a value of its own":        {`settings: {DOCKET_SPOOL_DIR: /tmp}`, "'DOCKET_SPOOL_DIR' not allowed"},
		"a number out of range":              {`settings: {DOCKET_PARK_BATCHES: -1}`, "at '/settings/DOCKET_PARK_BATCHES': minimum"},
		"a fraction":                         {`settings: {DOCKET_PARK_BATCHES: 1.5}`, "at '/settings/DOCKET_PARK_BATCHES'"},
		"a duration without a unit":          {`settings: {DOCKET_STORE_TIMEOUT: "8"}`, "at '/settings/DOCKET_STORE_TIMEOUT'"},
		"a duration as a number":             {`settings: {DOCKET_STORE_TIMEOUT: 8}`, "at '/settings/DOCKET_STORE_TIMEOUT': got number, want string"},
		"a size as Kubernetes writes it":     {`settings: {DOCKET_SPOOL_MAX_BYTES: 1Gi}`, "at '/settings/DOCKET_SPOOL_MAX_BYTES'"},
		"a choice that is none":              {`settings: {DOCKET_LOG_LEVEL: trace}`, "at '/settings/DOCKET_LOG_LEVEL': value must be one of 'debug', 'info', 'warn', 'error'"},
		"a setting through extraEnv":         {`consumer: {extraEnv: [{name: DOCKET_DATABASE_URL, value: x}]}`, "at '/consumer/extraEnv/0/name'"},
		"no brokers":                         {`kafka: {brokers: []}`, "at '/kafka/brokers': minItems"},
		"a broker without a port":            {`kafka: {brokers: [kafka]}`, "at '/kafka/brokers/0'"},
		"brokers as one string":              {`kafka: {brokers: "kafka:9092"}`, "at '/kafka/brokers': got string, want array"},
		"a login without a user":             {`kafka: {sasl: {mechanism: PLAIN, secretName: s}}`, "at '/kafka/sasl/username'"},
		"a login without a password":         {`kafka: {sasl: {mechanism: PLAIN, username: u}}`, "at '/kafka/sasl/secretName'"},
		"a mechanism that is none":           {`kafka: {sasl: {mechanism: GSSAPI}}`, "at '/kafka/sasl/mechanism'"},
		"certificates without TLS":           {`kafka: {tls: {secretName: s}}`, "at '/kafka/tls/enabled'"},
		"a certificate without its key":      {`kafka: {tls: {enabled: true, secretName: s, certKey: tls.crt}}`, "at '/kafka/tls/keyKey'"},
		"a shard without its name":           {`shards: {ranges: ["a=0-3"]}`, "at '/shards/name'"},
		"a shard without ranges":             {`shards: {name: a}`, "at '/shards/name'"},
		"ranges that are none":               {`shards: {ranges: ["0-3"], name: a}`, "at '/shards/ranges/0'"},
		"shards as a setting":                {`settings: {DOCKET_SHARDS: "a=0-3"}`, "'DOCKET_SHARDS' not allowed"},
		"an ingress without a host":          {`collector: {ingress: {enabled: true}}`, "at '/collector/ingress/hosts'"},
		"a common label that selects":        {`commonLabels: {app.kubernetes.io/name: x}`, "invalid propertyName 'app.kubernetes.io/name'"},
		"a lane that is none":                {`lanes: {names: [express]}`, "at '/lanes/names/0'"},
		"a lane twice":                       {`lanes: {names: [bulk, bulk]}`, "at '/lanes/names'"},
		"urgent rules without the lane":      {`lanes: {names: [bulk], urgent: "verdict=denied"}`, "at '/lanes/names'"},
		"rules that are none":                {`lanes: {names: [urgent], urgent: "denied"}`, "at '/lanes/urgent'"},
		"shares without the lane":            {`lanes: {names: [urgent], share: "label:id=5/s"}`, "at '/lanes/names'"},
		"a share without a time":             {`lanes: {names: [bulk], share: "label:id=5"}`, "at '/lanes/share'"},
		"a low limit alone":                  {`limits: {lowRows: 5}`, "at '/limits/rows'"},
		"a calendar of days":                 {`limits: {rows: 5, calendar: "Mon=low:3"}`, "at '/limits/calendar'"},
		"Redis as a setting":                 {`settings: {DOCKET_REDIS_URL: "redis://r"}`, "'DOCKET_REDIS_URL' not allowed"},
		"lanes as a setting":                 {`settings: {DOCKET_LANES: urgent}`, "'DOCKET_LANES' not allowed"},
		"no Secret for the database":         {`database: {secretName: ""}`, "at '/database/secretName'"},
		"three desks":                        {`desk: {replicas: 3}`, "at '/desk/replicas': maximum"},
		"an API without a certificate":       {`desk: {api: {enabled: true, tokensSecretName: t}}`, "at '/desk/api/tlsSecretName'"},
		"an API that nobody may use":         {`desk: {api: {enabled: true, tlsSecretName: t}}`, "at '/desk/api"},
		"OpenID Connect without a client":    {`desk: {oidc: {issuer: https://idp, redirectURL: https://desk/login/callback, groups: {a: viewer}}}`, "at '/desk/oidc/clientID'"},
		"OpenID Connect without groups":      {`desk: {oidc: {issuer: https://idp, clientID: c, redirectURL: https://desk/login/callback}}`, "at '/desk/oidc/groups'"},
		"OpenID Connect without TLS":         {`desk: {oidc: {issuer: http://idp, clientID: c, redirectURL: https://desk/login/callback, groups: {a: viewer}}}`, "at '/desk/oidc/issuer'"},
		"an unknown role of a group":         {`desk: {oidc: {issuer: https://idp, clientID: c, redirectURL: https://desk/login/callback, groups: {a: boss}}}`, "at '/desk/oidc/groups/a'"},
		"uploads without a certificate":      {`collector: {enabled: true, tokensSecretName: t}`, "at '/collector"},
		"uploads of anybody":                 {`collector: {enabled: true, tlsSecretName: t}`, "at '/collector"},
		"uploads of anybody, and tokens":     {`collector: {enabled: true, tlsSecretName: t, tokensSecretName: t, anonymous: true}`, "at '/collector"},
		"TLS, and plain text":                {`collector: {enabled: true, tlsSecretName: t, tokensSecretName: t, plaintext: true}`, "at '/collector"},
		"a database of the collector":        {`collector: {databaseSecretName: d}`, "'databaseSecretName' not allowed"},
		"a margin that is too small":         {`terminationMarginSeconds: 1`, "at '/terminationMarginSeconds': minimum"},
		"a timeout as a duration":            {`shutdownTimeoutSeconds: 25s`, "at '/shutdownTimeoutSeconds': got string, want integer"},
		"a volume that two nodes may mount":  {`consumer: {spool: {accessModes: [ReadWriteMany]}}`, "at '/consumer/spool/accessModes/0'"},
		"a spool that is neither on nor off": {`consumer: {spool: {enabled: "no"}}`, "at '/consumer/spool/enabled': got string, want boolean"},
		"a label that is the selector's":     {`consumer: {podLabels: {app.kubernetes.io/name: mine}}`, "invalid propertyName 'app.kubernetes.io/name'"},
		"scaling to nothing":                 {`keda: {minReplicas: 0}`, "at '/keda/minReplicas': minimum"},
		"a digest that is none":              {`image: {digest: latest}`, "at '/image/digest'"},
		"a digest in the repository":         {`image: {repository: "docket@sha256:00"}`, "at '/image/repository'"},
		"a monitor of another kind":          {`monitor: {kind: Probe}`, "at '/monitor/kind'"},
		"an endpoint with a password":        {`tracing: {endpoint: "http://u:p@otel:4318"}`, "at '/tracing/endpoint'"},
		"an endpoint without a scheme":       {`tracing: {endpoint: "otel:4318"}`, "at '/tracing/endpoint'"},
		"a port beyond the last":             {`networkPolicy: {kafka: {to: [], ports: [70000]}}`, "at '/networkPolicy/kafka/ports/0': maximum"},
		"more in a name than YAML's quotes":  {`database: {secretName: "x, defaultMode: 0777"}`, "at '/database/secretName'"},
		"a line end in a key":                {`kafka: {sasl: {passwordKey: "a\nb"}}`, "at '/kafka/sasl/passwordKey'"},
		"resources that Kubernetes has not":  {`desk: {resources: {limit: {memory: 1Gi}}}`, "at '/desk/resources'"},
		"a probe of its own making":          {`probes: {liveness: {exec: {command: [x]}}}`, "at '/probes/liveness'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &v); err != nil {
				t.Fatal(err)
			}
			if _, _, err := render(load(t), v); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.values, err, c.want)
			}
		})
	}
}

// A number that YAML readers keep as a float is written as it was.
func TestValues_NumbersAsWritten(t *testing.T) {
	t.Parallel()
	v, err := chartutil.ReadValues([]byte(`
settings: {DOCKET_MAX_RECORD_BYTES: 10MB, DOCKET_PARKING_LOOKAHEAD: 1000000, DOCKET_AUTO_MIGRATE: true, DOCKET_KAFKA_TOPIC: "a: b #c"}
replayer: {settings: {DOCKET_AUTO_MIGRATE: false, DOCKET_PARKING_LOOKAHEAD: "999999"}}
desk: {settings: {DOCKET_DESK_ALERT_THRESHOLD: 1000000000, DOCKET_DESK_RETRY_KINDS: ""}}`))
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := render(load(t), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ id, name, value string }{
		{"StatefulSet/docket-consumer", "DOCKET_PARKING_LOOKAHEAD", "1000000"},
		{"StatefulSet/docket-consumer", "DOCKET_AUTO_MIGRATE", "true"},
		{"StatefulSet/docket-consumer", "DOCKET_KAFKA_TOPIC", "a: b #c"},
		{"StatefulSet/docket-replayer", "DOCKET_AUTO_MIGRATE", "false"},
		{"StatefulSet/docket-replayer", "DOCKET_PARKING_LOOKAHEAD", "999999"},
		{"Deployment/docket-desk", "DOCKET_DESK_ALERT_THRESHOLD", "1000000000"},
		{"Deployment/docket-desk", "DOCKET_DESK_RETRY_KINDS", ""},
	} {
		if got, there := env(objects[want.id])[want.name]; !there || got != want.value {
			t.Errorf("%s: %s is %q, want %q", want.id, want.name, got, want.value)
		}
	}
}
