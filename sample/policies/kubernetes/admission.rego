# What speaks against a pod: a list of messages, empty where nothing does.
package kubernetes.admission

import rego.v1

deny contains message if {
	input.request.kind.kind == "Pod"
	some container in input.request.object.spec.containers
	not startswith(container.image, "registry.example.com/")
	message := sprintf("image %q is not from registry.example.com", [container.image])
}

deny contains message if {
	input.request.kind.kind == "Pod"
	some container in input.request.object.spec.containers
	container.securityContext.privileged
	message := sprintf("container %q is privileged", [container.name])
}
