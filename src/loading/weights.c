/* Weights of the training examples: see weights.h. */
#include "loading/weights.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include "data/weights.h"
#include "files/number.h"

bool shmt_weights_wanted(const struct shmt_config *config) { return config->weights[0] || config->class_weight[0]; }

/* The number of the class with this label; -1: there is none. */
static int64_t class_of(const struct shmtrain_data *data, float label) {
    uint32_t low = 0, high = data->n_labels;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (data->classes[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low < data->n_labels && data->classes[low] == label ? (int64_t)low : -1;
}

/* ---- "LABEL:W,LABEL:W" ---- */

static int refuse_form(const char *option, struct shmt_error *e) {
    return shmt_refuse(
        e, "--class-weight %.60s: expected LABEL:WEIGHT,LABEL:WEIGHT,... with weights of at least 0, or balanced", option);
}

static bool read_pair(const char **text, locale_t c_locale, float *label_out, float *weight_out) {
    const char *p = shmt_number_read(*text, c_locale, label_out);
    if (!p || *p != ':' || !isfinite(*label_out)) return false;
    p = shmt_number_read(p + 1, c_locale, weight_out);
    if (!p || (*p != ',' && *p != '\0') || !(*weight_out >= 0) || !isfinite(*weight_out)) return false;
    if (*p == ',' && p[1] == '\0') return false;
    *text = p + (*p == ',');
    return true;
}

/* Into of_class (n_labels); what is not named keeps its weight. */
static int read_pairs(const char *option, locale_t c_locale, const struct shmtrain_data *data, float *of_class,
                      struct shmt_error *e) {
    bool named[SHMTRAIN_MAX_CLASSES] = {0};
    for (const char *p = option; *p;) {
        float label, weight;
        if (!read_pair(&p, c_locale, &label, &weight)) return refuse_form(option, e);
        const int64_t c = class_of(data, label);
        if (c < 0)
            return shmt_refuse(
                e, "--class-weight %.60s: label %g does not occur in the training data, whose %u labels go from %g to %g",
                option, (double)label, data->n_labels, (double)data->label_low, (double)data->label_high);
        if (named[c]) return shmt_refuse(e, "--class-weight %.60s: label %g is named twice", option, (double)label);
        named[c] = true;
        of_class[c] = weight;
    }
    return 0;
}

static bool is_balanced(const struct shmt_config *config) { return strcmp(config->class_weight, "balanced") == 0; }

/* The weights that the option names; 1 for the other classes. */
static int read_option(const char *option, const struct shmtrain_data *data, float *of_class, struct shmt_error *e) {
    for (uint32_t c = 0; c < data->n_labels; c++) of_class[c] = 1;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return shmt_fail_errno(e, "cannot make the C locale");
    const int rc = read_pairs(option, c_locale, data, of_class, e);
    freelocale(c_locale);
    return rc;
}

int shmt_weights_check(const struct shmt_config *config, const struct shmtrain_model *model, const struct shmtrain_data *data,
                       struct shmt_error *e) {
    float of_class[SHMTRAIN_MAX_CLASSES];
    int rc = 0;
    if (config->class_weight[0] && (model->task == SHMTRAIN_REGRESSION || !data->classes))
        return shmt_refuse(e, "--class-weight %.60s: there are no classes: %s", config->class_weight,
                           model->task == SHMTRAIN_REGRESSION ? "the model learns a number" : "the data has too many labels");
    if (config->class_weight[0] && !is_balanced(config)) rc = read_option(config->class_weight, data, of_class, e);
    if (rc == 0 && config->weights[0]) rc = shmt_weights_read(config->weights, data->n_examples, NULL, e);
    return rc;
}

static uint64_t trained_at(const struct shmt_weights_of *trained, uint64_t k) {
    return trained->example ? trained->example[k] : k;
}

double shmt_weights_mean(const struct shmtrain_data *data, const struct shmt_weights_of *trained) {
    double sum = 0;
    if (!data->weight) return 1;
    for (uint64_t k = 0; k < trained->n; k++) sum += (double)data->weight[trained_at(trained, k)];
    return sum / (double)trained->n;
}

/* ---- filling ---- */

static void balance(const struct shmtrain_data *data, const struct shmt_weights_of *trained, float *of_class) {
    uint64_t count[SHMTRAIN_MAX_CLASSES] = {0}, n_classes = 0;
    for (uint64_t k = 0; k < trained->n; k++) {
        const int64_t c = class_of(data, data->label[trained_at(trained, k)]);
        if (c >= 0) count[c]++;
    }
    for (uint32_t c = 0; c < data->n_labels; c++) n_classes += count[c] > 0;
    for (uint32_t c = 0; c < data->n_labels; c++)
        of_class[c] = count[c] > 0 ? (float)((double)trained->n / ((double)n_classes * (double)count[c])) : 1;
}

static int weigh_classes(const struct shmt_config *config, const struct shmtrain_data *data,
                         const struct shmt_weights_of *trained, float *weight, struct shmt_error *e) {
    float of_class[SHMTRAIN_MAX_CLASSES];
    int rc = 0;
    if (is_balanced(config))
        balance(data, trained, of_class);
    else
        rc = read_option(config->class_weight, data, of_class, e);
    for (uint64_t i = 0; i < data->n_examples && rc == 0; i++) {
        const int64_t c = class_of(data, data->label[i]);
        if (c >= 0) weight[i] *= of_class[c];
        if (!isfinite(weight[i]))
            rc = shmt_fail(e, SHMTRAIN_E_DATA, "the weight of example %llu, multiplied by that of its class, is too large",
                           (unsigned long long)i + 1);
    }
    return rc;
}

int shmt_weights_fill(const struct shmt_weights_wish *wish, const struct shmtrain_data *data, float *weight,
                      struct shmt_error *e) {
    const struct shmt_config *config = wish->config;
    const struct shmt_weights_of *trained = wish->trained;
    int rc = 0;
    for (uint64_t i = 0; i < data->n_examples && !config->weights[0] && !wish->has_some; i++) weight[i] = 1;
    if (config->weights[0]) rc = shmt_weights_read(config->weights, data->n_examples, weight, e);
    if (rc == 0 && config->class_weight[0]) rc = weigh_classes(config, data, trained, weight, e);
    if (rc < 0) return rc;
    for (uint64_t k = 0; k < trained->n; k++)
        if (weight[trained_at(trained, k)] > 0) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "all training examples have weight 0: nothing would be learned");
}
