/* An addon for Node that maps a file into an ArrayBuffer, as mmap-io does. Node-API is declared here: its headers are not
 * packaged everywhere, and its ABI does not change. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef void *value;
typedef value (*callback)(void *environment, void *info);

int napi_get_cb_info(void *, void *, size_t *, value *, value *, void **);
int napi_get_value_string_utf8(void *, value, char *, size_t, size_t *);
int napi_create_external_arraybuffer(void *, void *, size_t, void *, void *, value *);
int napi_create_function(void *, const char *, size_t, callback, void *, value *);
int napi_set_named_property(void *, value, const char *, value);

static value map(void *environment, void *info)
{
	size_t count = 1, length;
	value argument, result;
	char path[4096];
	struct stat status;
	napi_get_cb_info(environment, info, &count, &argument, NULL, NULL);
	napi_get_value_string_utf8(environment, argument, path, sizeof path, &length);
	int file = open(path, O_RDONLY);
	if (file < 0 || fstat(file, &status))
		return NULL;
	void *data = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (data == MAP_FAILED ||
	    napi_create_external_arraybuffer(environment, data, status.st_size, NULL, NULL, &result))
		return NULL;
	return result;
}

value napi_register_module_v1(void *environment, value exports)
{
	value function;
	napi_create_function(environment, "map", (size_t)-1, map, NULL, &function);
	napi_set_named_property(environment, exports, "map", function);
	return exports;
}
