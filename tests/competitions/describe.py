"""The page in prose that lies in every data folder as description.md, in the order that competitions' pages have."""

METRICS = {
    "log_loss": "the multi-class logarithmic loss. Each image has been labeled with one true class. For each image you submit a "
    "predicted probability for every class; predicted probabilities are kept away from 0 and 1 before the logarithm is taken",
    "binary_log_loss": "the log loss between the predicted probabilities and the ground truth; a smaller log loss is better",
    "auc": "the area under the ROC curve between the predicted probability and the observed target",
    "mean_auc": "the mean column-wise ROC AUC: the score is the average of the individual AUCs of each predicted column",
    "weighted_auc": "the weighted AUC: each region of the ROC curve between true positive rates of 0 and 0.4 weighs 2, "
    "the rest weighs 1, and the total is normalized to lie between 0 and 1",
    "accuracy": "categorization accuracy, the percentage of predictions that are correct",
    "error": "the top-1 classification error: for each image an algorithm produces one label, and the score is the average error",
    "macro_f1": "the macro F1 score: F1 is calculated for each class and the unweighted mean is taken, so that rare classes count "
    "as much as frequent ones",
    "micro_f1": "the micro-averaged F1 score over all labels",
    "kappa": "the quadratic weighted kappa, which measures the agreement between two ratings. It is 1 for complete agreement "
    "and 0 for agreement by chance",
    "map5": "the Mean Average Precision @ 5 (MAP@5). Once the correct label has been scored for an observation, further "
    "predictions of it are skipped",
    "pf1": "the probabilistic F1 score (pF1), an extension of F1 that takes probabilities instead of binary classes",
    "rmse": "the root mean squared error (RMSE) between the predicted and the true values",
    "mae": "the mean absolute error (MAE)",
}


def describe(folder, title, story, metric, asked, example, files):
    """Writes description.md. `story` is a list of paragraphs, `example` lines of a submission, `files` pairs of name and
    text; `asked` says what a row of the submission holds."""
    listed = "\n".join(f"- **{name}** - {text}" for name, text in files)
    paragraphs = "\n\n".join(story)
    shown = "\n".join(example)
    folder.write("description.md", f"""# Overview

## Description

### {title}

{paragraphs}

## Evaluation

Submissions are evaluated on {METRICS[metric]}.

## Submission File

{asked} The file should contain a header and have the following format:

```
{shown}
```

# Dataset Description

{listed}
""")
